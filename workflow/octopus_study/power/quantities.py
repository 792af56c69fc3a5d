"""Electrical quantities with their units in the type, so that a voltage can't be taken for a power.

In the published episode a file with millivolts was read as milliwatts, and nothing in the program could object, since
both were floats. Here a sensor's number gets its type where it is parsed, and watts come from three places alone:
:meth:`Watt.from_product` (voltage times current of one channel of one chip), :meth:`Watt.from_power` (a reading that
the kernel or driver documents as a power) and :meth:`Watt.from_counter` (two readings of one energy counter).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

from octopus_study.errors import MeasureError
from octopus_study.units import size_of

_MADE_HERE = object()


class RefusedError(MeasureError):
    """A number was refused: the message says why, and `check` is the rule, as docs/power.md has it."""

    def __init__(self, reason: str, check: str = "readable") -> None:
        super().__init__(reason)
        self.check = check

    @property
    def full(self) -> str:
        """The reason behind the name of its rule; that a sensor isn't there or can't be read needs no name."""
        return str(self) if self.check == "readable" else f"{self.check}: {self}"


class UnitError(RefusedError, TypeError):
    """Quantities were combined that don't belong together: other units, or other channels."""

    def __init__(self, reason: str, check: str = "typed-units") -> None:
        super().__init__(reason, check)


@dataclass(frozen=True, slots=True)
class Channel:
    """Where a reading comes from: a chip (its folder or device), and the channel's number on it."""

    chip: str
    index: int

    def __str__(self) -> str:
        return f"{self.chip}, channel {self.index}"


@dataclass(frozen=True)
class Reading:
    """One number of a sensor, as it was read: an integer in the unit of its class, and the channel that gave it."""

    value: int
    channel: Channel
    unit: ClassVar[str] = ""

    def __init_subclass__(cls, unit: str) -> None:
        cls.unit = unit

    def __post_init__(self) -> None:
        if not self.unit:
            raise UnitError("a reading needs a unit: use MilliVolt, MilliAmpere, MicroWatt …")
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise UnitError(f"a sensor gives integers in {self.unit}, found {self.value!r} of {self.channel}")

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"


class MilliVolt(Reading, unit="mV"):
    """A bus voltage: hwmon's ``in*_input``."""


class MilliAmpere(Reading, unit="mA"):
    """A current: hwmon's ``curr*_input``."""


class MicroWatt(Reading, unit="µW"):
    """A power: hwmon's ``power*_input``."""


class MilliWatt(Reading, unit="mW"):
    """A power: NVML."""


class MilliJoule(Reading, unit="mJ"):
    """The state of an energy counter: NVML."""


@dataclass(frozen=True, order=True, repr=False)
class _Amount:
    """A physical amount that only the named constructors of its class can make; it may be negative (a difference)."""

    _amount: float
    made: InitVar[object] = None
    unit: ClassVar[str] = ""

    def __post_init__(self, made: object) -> None:
        name = type(self).__name__
        if made is not _MADE_HERE:
            raise UnitError(f"{name} is not made from a bare number: use the constructors of {name}")
        if not math.isfinite(self._amount):
            raise UnitError(f"{name} must be finite, found {self._amount}")

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

    def scaled(self, factor: float) -> Self:
        """Return the amount times a plain number."""
        return self._make(self._amount * factor)

    def over(self, other: Self) -> float:
        """Return the ratio to an amount of the same kind; NaN over zero."""
        divisor = self._same(other)
        return self._amount / divisor if divisor else math.nan

    @classmethod
    def mean(cls, amounts: Iterable[Self]) -> Self:
        """Return the mean of amounts of this kind; `UnitError` where there are none, or one is of another kind."""
        values = [*map(cls._make(0.0)._same, amounts)]
        if not values:
            raise UnitError(f"there is no mean of no {cls.__name__}")
        return cls._make(math.fsum(values) / len(values))

    def __repr__(self) -> str:
        return f"{self._amount:.6g} {self.unit}"


class Watt(_Amount):
    """A power."""

    unit = "W"

    @property
    def watts(self) -> float:
        """The number, for a file or a figure that names the unit."""
        return self._amount

    @classmethod
    def from_product(cls, voltage: MilliVolt, current: MilliAmpere) -> Watt:
        """Return V x I; `UnitError` where one is something else, or they are of two channels."""
        _expect(voltage, MilliVolt)
        _expect(current, MilliAmpere)
        if voltage.channel != current.channel:
            both = f"the voltage is of {voltage.channel} and the current of {current.channel}"
            raise UnitError(f"a power is V x I of one channel, but {both}", "same-channel")
        return cls._make(voltage.value * current.value * 1e-6)

    @classmethod
    def from_power(cls, reading: MicroWatt | MilliWatt) -> Watt:
        """Return a reading of a power; `UnitError` where it is one of something else."""
        _expect(reading, MicroWatt, MilliWatt)
        return cls._make(reading.value * size_of(reading.unit))

    @classmethod
    def from_counter(cls, before: MilliJoule, after: MilliJoule, nanoseconds: int) -> Watt:
        """Return the mean power between two readings of an energy counter; see :meth:`Joule.from_counter`."""
        if nanoseconds <= 0:
            raise UnitError(f"a mean power needs a span of time, found {nanoseconds} ns")
        return Joule.from_counter(before, after).over_time(nanoseconds)

    def times(self, nanoseconds: float) -> Joule:
        """Return the energy of this power over a time."""
        return Joule._make(self._amount * nanoseconds * 1e-9)


class Joule(_Amount):
    """An energy."""

    unit = "J"

    @property
    def joules(self) -> float:
        """The number, for a file or a figure that names the unit."""
        return self._amount

    @classmethod
    def from_counter(cls, before: MilliJoule, after: MilliJoule) -> Joule:
        """Return what a counter counted between two readings; `UnitError` where they are of two counters, or it went
        back."""
        _expect(before, MilliJoule)
        _expect(after, MilliJoule)
        if before.channel != after.channel:
            raise UnitError(f"two counters, not one: {before.channel} and {after.channel}")
        if after.value < before.value:
            went = f"the counter of {after.channel} went back from {before} to {after}"
            raise UnitError(went, "counter-monotonic")
        return cls._make((after.value - before.value) * size_of(before.unit))

    @classmethod
    def integral(cls, times_ns: Sequence[int], powers: Sequence[Watt]) -> Joule:
        """Return the trapezoid rule over two powers or more at ascending times; else `UnitError`."""
        if len(times_ns) != len(powers) or len(powers) < 2:
            found = f"{len(times_ns)} times, {len(powers)} powers"
            raise UnitError(f"an integral needs two points or more: {found}")
        if any(later <= earlier for earlier, later in pairwise(times_ns)):
            raise UnitError("the times of an integral must ascend")
        parts = zip(pairwise(times_ns), pairwise(map(Watt._make(0.0)._same, powers)), strict=True)
        return cls._make(math.fsum(math.fsum(ends) / 2 * (end - start) * 1e-9 for (start, end), ends in parts))

    def over_time(self, nanoseconds: float) -> Watt:
        """Return the mean power of this energy over a time."""
        return Watt._make(self._amount / (nanoseconds * 1e-9))


def _expect(reading: Any, *kinds: type[Reading]) -> None:
    if type(reading) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise UnitError(f"expected {wanted}, found {type(reading).__name__} ({reading})")
