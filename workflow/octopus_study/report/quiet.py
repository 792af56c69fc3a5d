"""Was the machine quiet while a study measured? Its load, and what a method seems to gain over itself."""

from collections.abc import Iterator, Mapping
from typing import Any

from octopus_study.measure.statistics import Interval, ratio_interval
from octopus_study.names import AGAIN
from octopus_study.report.runs import DataFrame
from octopus_study.report.samples import Group, paired, pivot

# Runs keep at most the machine's cores busy, and the system some more of the time; other work shows above that. A run
# that is bound to some cores may have others beside it: what these take from it shows in what follows.
LOAD_PER_CORE = 1.1
# How far a method may be from itself. By events a quiet GPU differs by half a per cent, and two per cent are what we
# call equal. On the host two methods of one process differ by where their memory lies: up to 17 per cent on a quiet
# machine, 25 and 50 per cent on one with other work.
AGAIN_LIMITS = {"device": 0.02}
AGAIN_LIMIT = 0.20  # on every other layer


def loads(provenance: Mapping[str, Any]) -> list[float]:
    """Return the load averages of a minute before and after a run, as far as they were read."""
    states = (provenance["machine"]["state"], provenance["state_after"])
    found = (state["cpu"].get("load_average_1min") for state in states)
    return [load for load in found if load is not None]


def loaded(provenance: Mapping[str, Any]) -> str:
    """Say that other work ran beside a study; empty where the load was its own at most, or can't be read."""
    cpu = provenance["machine"]["cpu"]
    cores = max(cpu["cores"], cpu.get("cores_installed", 0))
    found = loads(provenance)
    if max(found, default=0.0) <= LOAD_PER_CORE * cores:
        return ""
    said = " and ".join(f"{load:.2f}" for load in found)
    return (
        f"the machine was loaded: load averages of {said} before and after it, {LOAD_PER_CORE * cores:.3g} are allowed "
        f"on {cores} cores; measure again while nothing else runs"
    )


def unsteady(rows: DataFrame) -> str:
    """Say which methods differ from themselves by more than they may; empty where none does."""
    found = [
        f"{method} at {group.workload}, n={group.n}, {group.quantity}, {group.layer}: {ratio.value:.3f} "
        f"[{ratio.low:.3f}, {ratio.high:.3f}] times itself, {limit:.0%} are allowed"
        for group, method, ratio in again_ratios(rows)
        if beyond(ratio, limit := AGAIN_LIMITS.get(group.layer, AGAIN_LIMIT))
    ]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{'; '.join(found[:3])}{more}; measure again while nothing else runs" if found else ""


def again_ratios(rows: DataFrame) -> Iterator[tuple[Group, str, Interval]]:
    """Yield, for every method that was entered twice, the ratio of its times to its times."""
    timed = rows[rows["unit"] == "ms"]
    for key, chosen in timed.groupby(list(Group._fields), sort=False):
        table = pivot(chosen)
        for name in (column for column in table.columns if column.endswith(AGAIN)):
            method = name.removesuffix(AGAIN)
            both = paired(table, method, name)
            if len(both) > 1:
                yield Group(*key), method, ratio_interval(both[method], both[name])


def beyond(ratio: Interval, limit: float) -> bool:
    """Tell whether the whole interval of a ratio lies beyond a limit: a run has hundreds of ratios that should be 1,
    and by chance some of their intervals miss it."""
    return ratio.low > 1 + limit or ratio.high < 1 / (1 + limit)
