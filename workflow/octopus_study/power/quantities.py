"""Electrical quantities with their units in the type, so that a voltage can't be taken for a power.

The published episode that this module exists for: a file with millivolts was read as milliwatts, and nothing in the
program could object, since both were floats. Here a sensor's number gets its type where it is parsed, and watts come
from three places alone: :meth:`Watt.from_product` (voltage times current of one channel of one chip),
:meth:`Watt.from_power` (a reading that the kernel or driver documents as a power) and :meth:`Watt.from_counter` (two
readings of one energy counter). No function takes a bare number as a power or an energy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from octopus_study.errors import MeasureError

_MADE_HERE = object()


class UnitError(MeasureError, TypeError):
    """Quantities were combined that don't belong together: other units, or other channels.

    Parameters
    ----------
    reason : str
    check : str
        Which check of `octopus_study.power.checks` refused it.
    """

    def __init__(self, reason: str, check: str = "typed-units") -> None:
        super().__init__(reason)
        self.check = check


@dataclass(frozen=True, slots=True)
class Channel:
    """Where a reading comes from: a chip (its folder or device), and the channel's number on it."""

    chip: str
    index: int

    def __str__(self) -> str:
        return f"{self.chip}, channel {self.index}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of a sensor, as it was read: an integer in the unit of its class, and the channel that gave it."""

    value: int
    channel: Channel
    unit: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if type(self) is Reading:
            raise UnitError("a reading needs a unit: use MilliVolt, MilliAmpere, MicroWatt …")
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise UnitError(f"a sensor gives integers in {self.unit}, found {self.value!r} of {self.channel}")

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"


class MilliVolt(Reading):
    """A bus voltage: hwmon's ``in*_input``."""

    __slots__ = ()
    unit = "mV"


class MilliAmpere(Reading):
    """A current: hwmon's ``curr*_input``."""

    __slots__ = ()
    unit = "mA"


class MicroWatt(Reading):
    """A power: hwmon's ``power*_input``, RAPL's limits."""

    __slots__ = ()
    unit = "µW"


class MilliWatt(Reading):
    """A power: NVML."""

    __slots__ = ()
    unit = "mW"


class MicroJoule(Reading):
    """The state of an energy counter: hwmon's ``energy*_input``, RAPL's ``energy_uj``."""

    __slots__ = ()
    unit = "µJ"


class MilliJoule(Reading):
    """The state of an energy counter: NVML."""

    __slots__ = ()
    unit = "mJ"


_WATTS_PER: dict[type[Reading], float] = {MicroWatt: 1e-6, MilliWatt: 1e-3}
_JOULES_PER: dict[type[Reading], float] = {MicroJoule: 1e-6, MilliJoule: 1e-3}
Counter = MicroJoule | MilliJoule


class _Derived:
    """A physical amount that only the named constructors of its class can make; it may be negative (a difference)."""

    __slots__ = ("_amount",)
    unit: ClassVar[str] = ""

    def __init__(self, amount: float, made: object = None) -> None:
        name = type(self).__name__
        if made is not _MADE_HERE:
            raise UnitError(f"{name} is not made from a bare number: use the constructors of {name}")
        if not math.isfinite(amount):
            raise UnitError(f"{name} must be finite, found {amount}")
        self._amount = float(amount)

    @classmethod
    def _make(cls, amount: float) -> Self:
        return cls(amount, _MADE_HERE)

    def _same(self, other: object) -> float:
        if type(other) is not type(self):
            raise UnitError(f"{type(self).__name__} can't be combined with {type(other).__name__}")
        return other._amount

    def __add__(self, other: Self) -> Self:
        return self._make(self._amount + self._same(other))

    def __sub__(self, other: Self) -> Self:
        return self._make(self._amount - self._same(other))

    def __lt__(self, other: Self) -> bool:
        return self._amount < self._same(other)

    def __le__(self, other: Self) -> bool:
        return self._amount <= self._same(other)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._amount == self._same(other)

    def __hash__(self) -> int:
        return hash((type(self), self._amount))

    def scaled(self, factor: float) -> Self:
        """Return the amount times a plain number."""
        return self._make(self._amount * factor)

    def over(self, other: Self) -> float:
        """Return the ratio to an amount of the same kind; NaN over zero."""
        divisor = self._same(other)
        return self._amount / divisor if divisor else math.nan

    @classmethod
    def mean(cls, amounts: Iterable[Self]) -> Self:
        """Return the mean of amounts of this kind.

        Raises
        ------
        UnitError
            There are none, or one is of another kind.
        """
        values = [cls._make(0.0)._same(each) for each in amounts]
        if not values:
            raise UnitError(f"there is no mean of no {cls.__name__}")
        return cls._make(math.fsum(values) / len(values))

    def __repr__(self) -> str:
        return f"{self._amount:.6g} {self.unit}"


class Watt(_Derived):
    """A power."""

    __slots__ = ()
    unit = "W"

    @property
    def watts(self) -> float:
        """The number, for a file or a figure: whoever takes it out names the unit."""
        return self._amount

    @classmethod
    def from_product(cls, voltage: MilliVolt, current: MilliAmpere) -> Watt:
        """Return V x I of one channel.

        Raises
        ------
        UnitError
            One is not a voltage or not a current, or they are of two channels.
        """
        _expect(voltage, MilliVolt)
        _expect(current, MilliAmpere)
        if voltage.channel != current.channel:
            raise UnitError(
                f"a power is V x I of one channel, but the voltage is of {voltage.channel} and the current of "
                f"{current.channel}",
                "same-channel",
            )
        return cls._make(voltage.value * current.value * 1e-6)

    @classmethod
    def from_power(cls, reading: MicroWatt | MilliWatt) -> Watt:
        """Return a reading of a power.

        Raises
        ------
        UnitError
            It is a reading of something else.
        """
        _expect(reading, *_WATTS_PER)
        return cls._make(reading.value * _WATTS_PER[type(reading)])

    @classmethod
    def from_counter(cls, before: Counter, after: Counter, nanoseconds: int) -> Watt:
        """Return the mean power between two readings of an energy counter.

        Raises
        ------
        UnitError
            The readings are of two counters or units, or no time lies between them.
        """
        if nanoseconds <= 0:
            raise UnitError(f"a mean power needs a span of time, found {nanoseconds} ns")
        return Joule.from_counter(before, after).over_time(nanoseconds)

    def times(self, nanoseconds: float) -> Joule:
        """Return the energy of this power over a time."""
        return Joule._make(self._amount * nanoseconds * 1e-9)


class Joule(_Derived):
    """An energy."""

    __slots__ = ()
    unit = "J"

    @property
    def joules(self) -> float:
        """The number, for a file or a figure: whoever takes it out names the unit."""
        return self._amount

    @classmethod
    def from_counter(cls, before: Counter, after: Counter) -> Joule:
        """Return what an energy counter counted between two readings.

        Raises
        ------
        UnitError
            The readings are of two counters or units, or the counter went back.
        """
        _expect(before, *_JOULES_PER)
        _expect(after, type(before))
        if before.channel != after.channel:
            raise UnitError(f"two counters, not one: {before.channel} and {after.channel}")
        if after.value < before.value:
            went = f"the counter of {after.channel} went back from {before} to {after}"
            raise UnitError(went, "counter-monotonic")
        return cls._make((after.value - before.value) * _JOULES_PER[type(before)])

    @classmethod
    def integral(cls, times_ns: Sequence[int], powers: Sequence[Watt]) -> Joule:
        """Return the trapezoid rule over powers at ascending times.

        Raises
        ------
        UnitError
            Fewer than two points, other things than powers, or times that don't ascend.
        """
        if len(times_ns) != len(powers) or len(powers) < 2:
            raise UnitError(
                f"an integral needs two points or more: {len(times_ns)} times, {len(powers)} powers"
            )
        total = []
        for (start, left), (end, right) in zip(
            zip(times_ns, powers, strict=True), zip(times_ns[1:], powers[1:], strict=True), strict=False
        ):
            if end <= start:
                raise UnitError("the times of an integral must ascend")
            total.append(Watt.mean((left, right)).times(end - start)._amount)
        return cls._make(math.fsum(total))

    def over_time(self, nanoseconds: float) -> Watt:
        """Return the mean power of this energy over a time."""
        return Watt._make(self._amount / (nanoseconds * 1e-9))


def _expect(reading: Any, *kinds: type[Reading]) -> None:
    if type(reading) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise UnitError(f"expected {wanted}, found {type(reading).__name__} ({reading})")
