"""The judges of the power-on test: each looks at the same evidence and says whether one rule holds.

A judge that has nothing to look at (no voltages beside the power, no counter) answers "not applicable"; that never
counts as passed. The thresholds are those of the measurement rules of this artifact, except where a comment says why.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from octopus_study.power.quantities import MilliJoule, Watt
from octopus_study.power.source import Trace

IDLE, LOAD = "idle", "load"
PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"
HIGHEST_SHARE = 1.15
# A power that is too small by a factor of 1000 is at most 0.00115 of the limit; no board idles so low.
LOWEST_SHARE = 0.002
LEAST_RISE, LEAST_SIGMA, LEAST_RETURN = 0.10, 5.0, 0.80
LEAST_VALUES = 10
SIBLING, AGREEMENT = 0.02, 0.05
# An INA3221 is exact within some percent at small currents: a rail may seem to draw a little more than what feeds it.
PART_TOLERANCE = 1.05
_BIN_NS = 50_000_000


class Verdict(NamedTuple):
    """What a judge says: `outcome` is ``passed``, ``failed`` or ``not applicable``; `detail` is what it measured."""

    outcome: str
    detail: str


@dataclass(frozen=True)
class Phase:
    """A steady part of the test, after the sensor had time to follow."""

    name: str  # ``idle`` or ``load``
    start_ns: int  # `time.monotonic_ns()`
    end_ns: int
    levels: tuple[Watt, ...]  # mean powers of bins of 50 ms
    voltages: Mapping[str, float]  # means of what was read beside: millivolts by file,
    parts: Mapping[str, Watt]  # powers of the rails behind this one by label,
    whole: Watt | None  # and the power itself at the moments of those

    @property
    def mean(self) -> float:
        """Mean power in watts; NaN where nothing was read."""
        return Watt.mean(self.levels).watts if self.levels else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of the levels in watts."""
        return statistics.stdev(level.watts for level in self.levels) if len(self.levels) > 1 else 0.0


@dataclass(frozen=True)
class Evidence:
    """All that the judges see: the trace of the whole test, its phases (idle, load, idle, load) and the limit."""

    trace: Trace
    phases: tuple[Phase, ...]
    limit: Watt

    def of(self, name: str) -> list[Phase]:
        """Return the phases of one kind."""
        return [phase for phase in self.phases if phase.name == name]


def levels(trace: Trace) -> tuple[tuple[int, Watt], ...]:
    """Return times and mean powers of the parts of a trace, of 50 ms each."""
    bins: dict[int, list[Watt]] = {}
    for sample in trace.samples:
        bins.setdefault(sample.at_ns // _BIN_NS, []).append(sample.power)
    return tuple((index * _BIN_NS + _BIN_NS // 2, Watt.mean(powers)) for index, powers in bins.items())


def _counts(trace: Trace) -> list[tuple[int, MilliJoule]]:
    """Return when the counter advanced; one that stands still counts no power, which is a value and not a gap."""
    edges = trace.counter_updates()[1:]  # the first state was there before it was first read
    if len(edges) > 1:
        return edges
    return [(sample.at_ns, sample.counter) for sample in trace.samples if sample.counter is not None]


def judge(evidence: Evidence) -> dict[str, Verdict]:
    """Ask every judge, in the order of the checks; without a value in each phase only the first can answer."""
    seen = all(phase.levels for phase in evidence.phases)
    silent = Verdict(NOT_APPLICABLE, "a phase without a value")
    return {check: ask(evidence) if seen or check == "readable" else silent for check, ask in JUDGES.items()}


def _readable(evidence: Evidence) -> Verdict:
    good, bad = len(evidence.trace.samples), evidence.trace.failures
    empty = [phase.name for phase in evidence.phases if not phase.levels]
    total = good + len(bad)
    detail = f"{len(bad)} of {total} readings failed"
    if bad:
        detail += f" ({bad[-1].reason})"
    if empty:
        detail += f"; a phase ({empty[0]}) has no value"
    return _verdict(bool(total) and not empty and not evidence.trace.fails_often, detail)


def _plausible(evidence: Evidence) -> Verdict:
    limit = evidence.limit.watts
    means = [phase.mean for phase in evidence.phases]
    zeros = evidence.trace.zeros
    low, high = LOWEST_SHARE * limit, HIGHEST_SHARE * limit
    detail = f"{min(means):.4g} to {max(means):.4g} W; plausible are {low:.3g} to {high:.4g} W"
    if zeros:
        detail += f"; {zeros} readings are 0 or less"
    return _verdict(low < min(means) and max(means) <= high and not zeros, detail)


def _sibling(evidence: Evidence) -> Verdict:
    # A healthy power meets a voltage's number by chance in one level at most, since the load changes it; a power that
    # is a voltage has its number in every phase, also where the voltage itself follows the load.
    names = set.intersection(*(set(phase.voltages) for phase in evidence.phases))
    if not names:
        return Verdict(NOT_APPLICABLE, "no voltages beside the power")
    off = {name: max(_apart(phase, name) for phase in evidence.phases) for name in sorted(names)}
    nearest = min(off, key=lambda name: off[name])
    detail = f"power in mW and {nearest} in mV are up to {off[nearest]:.1%} apart"
    return _verdict(off[nearest] > SIBLING, detail)


def _apart(phase: Phase, voltage: str) -> float:
    millivolts = phase.voltages[voltage]
    return abs(phase.mean * 1e3 - millivolts) / millivolts if millivolts else math.inf


def _hierarchy(evidence: Evidence) -> Verdict:
    shares = [
        (part.over(phase.whole), label)
        for phase in evidence.phases
        if phase.whole is not None
        for label, part in phase.parts.items()
    ]
    if not shares:
        return Verdict(NOT_APPLICABLE, "no rails behind this one")
    share, label = max(shares, key=lambda each: math.inf if math.isnan(each[0]) else each[0])
    return _verdict(share <= PART_TOLERANCE, f"{label} draws {share:.0%} of the rail that feeds it")


def _monotonic(evidence: Evidence) -> Verdict:
    states = [sample.counter for sample in evidence.trace.samples if sample.counter is not None]
    if not states:
        return Verdict(NOT_APPLICABLE, "no energy counter")
    back = [(before, after) for before, after in pairwise(states) if after.value < before.value]
    if back:
        return Verdict(FAILED, f"the counter went back from {back[0][0]} to {back[0][1]}")
    return Verdict(PASSED, f"{len(states)} readings, none below the one before")


def _distinct(evidence: Evidence) -> Verdict:
    samples = evidence.trace.samples
    count = len({sample.power.watts for sample in samples})
    return _verdict(count >= LEAST_VALUES, f"{count} different values in {len(samples)} readings")


def _rises(evidence: Evidence) -> Verdict:
    sigma = max(phase.deviation for phase in evidence.of(IDLE))
    rises = [load.mean - idle.mean for idle, load in _pairs(evidence)]
    shares = [rise / idle.mean for rise, (idle, _) in zip(rises, _pairs(evidence), strict=True) if idle.mean > 0]
    enough = len(shares) == len(rises) and min(shares) >= LEAST_RISE and min(rises) >= LEAST_SIGMA * sigma
    said = " and ".join(f"{share:+.1%}" for share in shares)
    return _verdict(enough, f"power changed by {said or 'nothing measurable'} under load; idle sigma {sigma:.3g} W")


def _above(evidence: Evidence) -> Verdict:
    load = min(phase.mean for phase in evidence.of(LOAD))
    idle = max(phase.mean for phase in evidence.of(IDLE))
    return _verdict(load > idle, f"lowest load {load:.4g} W, highest idle {idle:.4g} W")


def _comes_back(evidence: Evidence) -> Verdict:
    first, load, second = (phase.mean for phase in evidence.phases[:3])
    if load <= first:
        return Verdict(NOT_APPLICABLE, "nothing rose")
    gone = (load - second) / (load - first)
    return _verdict(gone >= LEAST_RETURN, f"{gone:.0%} of the rise was gone in the second idle phase")


def _agrees(evidence: Evidence) -> Verdict:
    if all(sample.counter is None for sample in evidence.trace.samples):
        return Verdict(NOT_APPLICABLE, "the source has no counter beside its power")
    ratios = [ratio for phase in evidence.phases if (ratio := _counter_ratio(evidence.trace, phase)) is not None]
    if not ratios:
        return Verdict(FAILED, "no phase in which the counter ran on")
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    return _verdict(abs(worst - 1) <= AGREEMENT, f"counter over integral of power: {worst:.4f} in the worst phase")


def _counter_ratio(trace: Trace, phase: Phase) -> float | None:
    """Return the mean power by the counter over that by the readings; None where the counter went back."""
    part = trace.between(phase.start_ns, phase.end_ns)
    counts = _counts(part)
    if len(counts) < 2 or counts[-1][1].value < counts[0][1].value:
        return None
    (start, before), (end, after) = counts[0], counts[-1]
    return Watt.from_counter(before, after, end - start).over(Watt.mean(phase.levels))


def _pairs(evidence: Evidence) -> Sequence[tuple[Phase, Phase]]:
    return list(zip(evidence.of(IDLE), evidence.of(LOAD), strict=True))


def _verdict(holds: bool, detail: str) -> Verdict:
    return Verdict(PASSED if holds else FAILED, detail)


# By the rule that each asks for, in this order; docs/power.md tells what a rule stops.
JUDGES: dict[str, Callable[[Evidence], Verdict]] = {
    "readable": _readable,
    "plausible-range": _plausible,
    "sibling-voltage": _sibling,
    "hierarchy": _hierarchy,
    "counter-monotonic": _monotonic,
    "distinct-values": _distinct,
    "rises": _rises,
    "load-above-idle": _above,
    "comes-back": _comes_back,
    "counter-agrees": _agrees,
}
