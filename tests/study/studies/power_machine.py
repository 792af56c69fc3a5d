"""A machine in simulated time for study `power`: frames of so many milliseconds and watts, and a board."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from octopus_study.power.choose import SourceSpec
from octopus_study.power.quantities import Channel, MilliJoule, MilliVolt, MilliWatt, Watt
from octopus_study.power.selftest import SelfTest, Timing, power_on_test
from octopus_study.power.session import Attempt, PowerSession
from octopus_study.power.source import Failure, Sample, SensorError, Trace

BOARD = Channel("simulated", 0)
STEP_NS, SECOND_NS = 20_000_000, 1_000_000_000
START_NS = 5_000_000_000


@dataclass
class Machine:
    """Time, a board and its sampler; time passes in frames and in sleep alone."""

    idle_watts: float = 100.0
    noise: float = 0.2
    # With a counter the board also tells its mean over a second, as an H200 does; without one its power of the moment
    # alone, as an INA3221 does.
    has_counter: bool = True
    limit_watts: float = 700.0
    dither_ns: int = 0  # by how much the sampler's readings leave their beat, at most
    step_ns: int = STEP_NS
    counter_factor: float = 1.0  # 1 counts what the board draws
    dies_at_s: float = 1e9  # when the sampler ends
    silent_s: tuple[float, float] = (0.0, 0.0)  # from when to when it reads nothing
    # What lies beside the power:
    voltages_mv: dict[str, int] = field(default_factory=dict)
    parts_mw: dict[str, int] = field(default_factory=dict)
    scope: str = "gpu_board"
    name: str = "simulated"
    averaged_seconds: float = 0.0
    accuracy: float = 0.05
    now_ns: int = START_NS
    watts: float = 100.0
    joules: float = 0.0
    paused: bool = False
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    _next_ns: int = START_NS
    _beats: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(1))
    _past: deque[tuple[int, float]] = field(default_factory=deque)

    def monotonic_ns(self) -> int:
        return self.now_ns

    @property
    def seconds(self) -> float:
        return (self.now_ns - START_NS) * 1e-9

    def sleep(self, seconds: float) -> None:
        self.spend(round(seconds * 1e9), self.idle_watts)

    def frame(self, milliseconds: float, watts: float) -> Callable[[], None]:
        return lambda: self.spend(round(milliseconds * 1e6), watts)

    def spend(self, nanoseconds: int, watts: float) -> None:
        """Let time pass at a power; the sampler reads on its beat."""
        end, self.watts = self.now_ns + nanoseconds, watts
        while self._next_ns <= end:
            self._count(self._next_ns)
            if not self.paused and not self.silent_s[0] <= self.seconds < self.silent_s[1]:
                try:
                    self.samples.append(self.read())
                except SensorError as error:
                    self.failures.append(Failure(self.now_ns, str(error)))
            self._beats += 1
            self._next_ns = START_NS + self._beats * self.step_ns + self._random.randint(0, self.dither_ns)
        self._count(end)

    def _count(self, at_ns: int) -> None:
        self.joules += self._wobble() * (at_ns - self.now_ns) * 1e-9
        self.now_ns = at_ns
        if self.has_counter:
            self._past.append((at_ns, self.joules))

    def _wobble(self) -> float:
        return self.watts + self.noise * ((self.now_ns // STEP_NS * 7) % 11 - 5) / 5

    def read(self) -> Sample:
        power = Watt.from_power(MilliWatt(round(1e3 * self._wobble()), BOARD))
        counted = MilliJoule(round(1e3 * self.joules * self.counter_factor), BOARD)
        if not self.has_counter:
            return Sample(self.now_ns, 1_000_000, power, None)
        while self._past and self._past[0][0] < self.now_ns - SECOND_NS:
            self._past.popleft()
        since, joules = self._past[0] if self._past else (self.now_ns, 0.0)
        mean = (self.joules - joules) * 1e12 / max(self.now_ns - since, 1) or 1e3 * self._wobble()
        return Sample(self.now_ns, 1_000_000, power, counted, Watt.from_power(MilliWatt(round(mean), BOARD)))

    def limit(self) -> Watt:
        return Watt.from_power(MilliWatt(round(1e3 * self.limit_watts), BOARD))

    def voltages(self) -> dict[str, MilliVolt]:
        return {name: MilliVolt(value, BOARD) for name, value in self.voltages_mv.items()}

    def parts(self) -> dict[str, Watt]:
        return {label: Watt.from_power(MilliWatt(value, BOARD)) for label, value in self.parts_mw.items()}

    def facts(self) -> dict[str, Any]:
        means = {"power": "of the moment", "integrated": "mean of a second"}
        means = means if self.has_counter else {}
        return {"name": self.name, "scope": self.scope, **means}

    def collect(self) -> Trace:
        if self.seconds > self.dies_at_s:
            raise SensorError("the sampler ended with code -9")
        found = Trace(self.scope, tuple(self.samples), tuple(self.failures))
        self.samples, self.failures = [], []
        return found

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def test(self, load_watts: float | None = None, timing: Timing | None = None) -> SelfTest:
        """Run the power-on test; by default under half the watts between idle and the limit."""
        watts = (self.idle_watts + self.limit_watts) / 2 if load_watts is None else load_watts
        return power_on_test(self, self.collect, self.frame(40, watts), clock=self, timing=timing)

    @contextmanager
    def open_session(self, device: str) -> Iterator[PowerSession]:
        yield self.session()

    def session(self) -> PowerSession:
        test = self.test()
        spec = SourceSpec("nvml")
        return PowerSession(spec, self, self, test, (Attempt(spec, "", test),))
