"""The last words of a study and of a run: a few results, and where the rest is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octopus_study.measure.rows import read_rows
from octopus_study.names import AGAIN, SUBJECT
from octopus_study.report.claims import read_claims
from octopus_study.report.claims.outcome import Verdict
from octopus_study.report.claims.tally import MAJOR, tally
from octopus_study.report.frame import HERE, Frame
from octopus_study.report.missing import most_say
from octopus_study.report.text import quantity_text
from octopus_study.status import MethodStatus

if TYPE_CHECKING:
    import pandas as pd

_CASE = ["quantity", "layer", "workload", "n", "input"]
_FIRST = ("end_to_end", "kernel", "total")  # the quantities that say most
_MOST = 3


def study_ended(study: str, rows: Path, seconds: float) -> str:
    """Return a study's last line: how long it took, and three of its results."""
    table = read_rows(rows)
    synthetic = ", synthetic data" if table["dataset"].str.contains("synthetic").any() else ""
    results = headlines(table) or [_else_said(table)]
    return f"{study}: done in {_lasted(seconds)}{synthetic}. {'; '.join(results)}."


def _else_said(rows: pd.DataFrame) -> str:
    """Say why a study has no results, or that it has others than times of methods with the same answer."""
    if rows["value"].notna().any():
        return "Its results are in the report"
    return f"Nothing was measured: {most_say(rows)}"


def _lasted(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def headlines(rows: pd.DataFrame) -> list[str]:
    """Return up to three results of a study, of different workloads, each of its largest batch: the time of Octopus (of
    the fastest method in a study without it), and the ratio to the fastest of the others with the same answer."""
    times = rows[(rows["unit"] == "ms") & rows["value"].notna() & rows["layer"].isin(("host", "device"))]
    times = times[times["status"] != MethodStatus.DIFFERENT]
    others = ~times["method"].str.contains(f"^{SUBJECT}|{AGAIN}$|bound")  # forms of Octopus are no baselines
    times = times[others | (times["method"] == SUBJECT)]
    medians = times.groupby([*_CASE, "method"], sort=False)["value"].median().reset_index()
    found: dict[str, str] = {}
    order = {name: place - len(_FIRST) for place, name in enumerate(_FIRST)}
    cases = sorted(medians.groupby(_CASE, sort=False), key=lambda case: (order.get(case[0][0], 0), -case[0][3]))
    for (_, _, workload, n, handed), of_case in cases:
        by_method = of_case.set_index("method")["value"].sort_values()
        if len(by_method) > 1 and workload not in found:
            found[workload] = f"{', '.join(filter(None, (workload, str(n), handed)))}: {_beside(by_method)}"
    return list(found.values())[:_MOST]


def _beside(times: pd.Series) -> str:
    own = SUBJECT if SUBJECT in times else times.index[0]
    other = times.drop(own).idxmin()
    return f"{own} {quantity_text(times[own], 'ms')}, {times[other] / times[own]:.3g}\u00d7 over {other}"


def run_ended(build: Path, figures: Path) -> list[str]:
    """Return a run's last lines: how claims ended here and on the references, each once as in the paper, and where to
    look."""
    frame, groups, lines = Frame.read(build / "numbers.csv"), {}, []
    for one in read_claims(build / "claims.csv"):
        if one.scope in frame.shown(one.study):
            groups.setdefault((one.scope == HERE, frame.is_gpu(one.scope)), []).append(one)
    for (here, _), judged in sorted(groups.items(), reverse=True):
        counts = tally(one._replace(scope="all") for one in judged)["all"]
        told = "; ".join(_ended(group, counts[group]) for group in ("published", MAJOR))
        lines.append(f"claims on {judged[0].machine}, {'measured now' if here else 'committed'}: {told}")
    return [
        *lines,
        f"paper: {build / 'octopus.pdf'}; further tables: {build / 'supplement.pdf'}",
        f"all results, claims and charts in one page: {figures / 'report.html'}; a number's rows: octopus trace ID",
    ]


def _ended(group: str, counts: dict[Verdict, int]) -> str:
    return f"{group}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
