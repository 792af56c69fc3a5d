"""Power and energy: the sensor, ratios of energies taken apart, what the published tables say alone, the sensor's
trace, and why there is no energy where there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from statistics import stdev
from typing import TYPE_CHECKING, Any

from octopus_study.measure.rows import COLUMNS, one_line
from octopus_study.names import POWER_SCOPES, POWER_SENSORS, PUBLISHED_POWER, human
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number, make_number, make_text, published
from octopus_study.report.machines import place_name, run_list, shown
from octopus_study.report.missing import make_absent
from octopus_study.report.runs import Run
from octopus_study.report.selector import ALL_ROWS, PROVENANCE
from octopus_study.report.series import Series
from octopus_study.report.studies import power_figures as figures
from octopus_study.report.studies import power_quality as quality
from octopus_study.report.studies import power_ratios as ratios
from octopus_study.report.studies import power_tables as tables
from octopus_study.report.studies.power_quality import LAYERS, sensor_scope
from octopus_study.report.studies.power_ratio_figure import draw_decomposition
from octopus_study.report.studies.power_view import BACK_TO_BACK, STUDY, footer, published_counts
from octopus_study.report.study import StudyReport
from octopus_study.report.text import quantity_text

if TYPE_CHECKING:
    import pandas as pd

# The table that multiplies voltage and current, and the one that took a voltage for a power.
TABLES = (STUDY, "power_voltage_misread")
LINTED = (*TABLES, "power_voltage_relabelled")
ONE, MANY = PUBLISHED_POWER["published"], PUBLISHED_POWER["n-launches"]
SHOWN_COUNT = 1000
SELF_TEST = "self-test"
# Seconds of the trace that are shown before the first window of the round and after the last one.
_MARGIN = 4.0
_LOOKED = re.compile(r"\s*\(looked at .*$")


def vetted(run: Run) -> Run:
    """Return the run as it is, or, where the linter refuses it, with one unavailable row per method and count that says
    why.

    No row of a refused file survives, so that neither a figure nor a sentence can show a part of it.
    """
    from octopus_study.power.lint import lint_file  # needs pandas, which who only draws a figure does without

    findings = lint_file(run.source)
    if not findings:
        return run
    more = f" ({len(findings) - 1} more)" if len(findings) > 1 else ""
    first = f"{findings[0].check}: {findings[0].message}"
    why = one_line(f"refused by the results linter, {first}{more}")
    rows = run.rows[run.rows["layer"].isin(LAYERS)]
    rows = rows.drop_duplicates(["dataset", "workload", "n", "method", "layer"])
    kept = {"quantity": "energy_per_frame", "unit": "mJ", "block": 0, "value": float("nan")}
    rows = rows.assign(**kept, answer=f"unavailable: {why}")
    return replace(run, rows=rows[list(COLUMNS)].reset_index(drop=True))


def why_none(run: Run) -> str:
    """Return why a run has no energies, in full."""
    notes = run.rows.loc[run.rows["value"].isna(), "answer"]
    return str(notes.iloc[0]).partition(":")[2].strip() if len(notes) else "its rows hold no energy"


def brief(why: str) -> str:
    """Return a reason without the list of where a sensor was looked for."""
    return _LOOKED.sub("", why)


def record(run: Run) -> dict[str, Any]:
    """Return what provenance says of the sensor and its self-test; empty where it says nothing."""
    return (run.provenance.get("extra") or {}).get("power") or {}


def no_energy(run: Run) -> Iterator[Number]:
    """Yield the reason of a run without energies; where a claim asks for a ratio, it finds the reason too."""
    if sensor_scope(run):
        return
    why = why_none(run)
    names = {"unavailable": why, "unavailable_brief": brief(why), "sensor.title": brief(why)}
    for name, text in names.items():
        yield make_text(run.fact_key(name), run.from_rows("", PROVENANCE), text)
    rows = run.rows[run.rows["layer"].isin(LAYERS) & (run.rows["method"] == "published")]
    for row in rows.drop_duplicates(["workload", "n", "layer"]).itertuples():
        key = run.key(row.workload, row.n, "published", quantity="over_n-launches", layer=row.layer)
        source = run.from_rows(row.dataset, f"n={row.n}, layer={row.layer}")
        yield make_absent(key, source, "ratio", brief(why))


def sensor(run: Run) -> Iterator[Number]:
    """Yield what the run's energies are the energies of, by which sensor, and what the power-on test said."""
    scope = sensor_scope(run)
    if not scope:
        return
    device, test = record(run).get("source") or {}, record(run).get("selftest") or {}
    name = human(POWER_SENSORS, str(device.get("name", "sensor")))
    period = test.get("update_seconds")
    updates = f", new value every {quantity_text(1000 * period, 'ms')}" if period else ""
    source = run.from_rows("", PROVENANCE)
    yield make_text(run.fact_key("sensor.scope"), source, scope)
    title = f"{name}, {human(POWER_SCOPES, scope)}{updates}"
    yield make_text(run.fact_key("sensor.title"), source, title)
    if (accuracy := device.get("accuracy")) is not None:
        note = "relative systematic error as the maker states it, or as it is assumed"
        key = run.fact_key("sensor.accuracy")
        yield make_number(key, source, "fraction", float(accuracy), note=note)
    source = run.from_rows("", "provenance, extra.power.selftest")
    for check in test.get("checks", []):
        key = run.key("selftest.check", quantity=check["id"])
        yield make_text(key, source, str(check["detail"]), str(check["outcome"]))


def power_shown(runs: list[Run]) -> Iterator[Number]:
    """Yield on which machines energy was measured, and on which not and why."""
    measured = [run for run in runs if sensor_scope(run)]
    without = [run for run in runs if not sensor_scope(run)]
    parts = [f"Energies shown are of {run_list(measured)}."] if measured else []
    parts += [f"No energy was measured on {place_name(run)}: {brief(why_none(run))}." for run in without]
    yield shown(runs, "energy", " ".join(parts), ALL_ROWS)
    if measured:
        yield shown(runs, "measured", "; ".join(map(place_name, measured)), ALL_ROWS)


def published_ratios(frame: Frame) -> Iterator[Number]:
    """Yield the time, power and energy of one launch over N, how much of the energy's ratio is not the time's, and the
    highest power under load over idle: below one is the plainest symptom of a table that is wrong.

    Energy is time x power throughout, since the wrong table prints no energies.
    """
    for table in TABLES:
        logs, loads = [], []
        for n in published_counts(frame, table):
            (first, last), powers = (
                [frame[published(table, f"n{n}", method, quantity)] for method in (ONE, MANY)]
                for quantity in ("time", "power")
            )
            time, power = first.value / last.value, powers[0].value / powers[1].value
            logs.append(math.log(power))
            loads += [number.value for number in powers]
            for name, unit, value in _ratios(time, power):
                note = f"{ONE} over {MANY}, energy = time x power"
                yield _derived(first, Key(PUBLISHED, "derived", table, n, quantity=name), unit, value, note)
        where = Key(PUBLISHED, "derived", table)
        if len(logs) > 1:
            note = "standard deviation over n of log(energy ratio / time ratio)"
            text = f"{stdev(logs):.2g}"
            yield _derived(first, where.but(quantity="identity"), "text", stdev(logs), note, text)
        idle = frame.get(published(table, "n0", "idle", "power"))
        if idle and loads:
            key, highest = where.but(quantity="highest_load_over_idle"), max(loads) / idle.value
            yield _derived(idle, key, "ratio", highest, "highest load / idle")


def _ratios(time: float, power: float) -> Iterator[tuple[str, str, float]]:
    ratios_of = {"time": time, "power": power, "energy": time * power}
    yield from ((name, "ratio", ratio) for name, ratio in ratios_of.items())
    changes = {
        "time_saved": 1 - time,
        "energy_saved": 1 - time * power,
        "power_added": power - 1,
        "longer": 1 / time - 1,
    }
    yield from ((name, "fraction", change) for name, change in changes.items())


def linted(frame: Frame) -> Iterator[Number]:
    """Yield the linter's verdict on each published power table, with the checks that refuse it."""
    from octopus_study.power.lint import lint_file

    for table in LINTED:
        first = frame.get(published(table, "n0", "idle", "power"))
        if first is not None:
            findings = lint_file(first.file)
            checks = ", ".join(dict.fromkeys(finding.check for finding in findings))
            text = f"refused ({checks})" if findings else "accepted"
            note = findings[0].message if findings else ""
            key = Key(PUBLISHED, "derived", table, quantity="linter")
            yield _derived(first, key, "text", math.nan, note, text)


def _derived(source: Number, key: Key, unit: str, value: float, note: str, text: str | None = None) -> Number:
    whole = source.source._replace(selector=ALL_ROWS)
    return make_number(key, whole, unit, value, text=text, note=note)


def traces(run: Run) -> Iterator[Series]:
    """Yield the sensor's trace over the power-on test and over one round of windows, with the phases and windows within
    them; seconds count from the first sample."""
    scope = sensor_scope(run)
    if not scope:
        return
    trace = run.rows[(run.rows["layer"] == "trace") & (run.rows["quantity"] == f"power_{scope}")]
    trace = trace[trace["value"].notna()].sort_values("block", kind="stable")
    last = trace.loc[trace["method"] == SELF_TEST, "block"].max()
    tested = trace["block"] <= last
    yield _points(run, "selftest", trace[tested])
    phases = (record(run).get("selftest") or {}).get("phases", [])
    names = {"phase": "phase", "start": "start_seconds", "end": "end_seconds", "mean": "mean_w"}
    columns = {
        name: [math.nan if phase.get(key) is None else phase[key] for phase in phases]
        for name, key in names.items()
    }
    yield Series(run.scope, STUDY, "phases", columns)
    windows = shown_windows(run)
    if len(windows):
        span = (windows["start"].min() - _MARGIN, windows["end"].max() + _MARGIN)
        yield _points(run, "round", trace[~tested & (trace["block"] / 1000).between(*span)])
        columns = {name: windows[name].tolist() for name in ("n", "method", "start", "end")}
        yield Series(run.scope, STUDY, "windows", columns)


def _points(run: Run, name: str, rows: pd.DataFrame) -> Series:
    columns = {"seconds": (rows["block"] / 1000).tolist(), "watts": rows["value"].astype(float).tolist()}
    return Series(run.scope, STUDY, name, columns)


def shown_windows(run: Run) -> pd.DataFrame:
    """Return the windows of the shown round: method, n, start and end in seconds since the trace's zero.

    It is the first round of the published count, or of the largest one, that has every method.
    """
    rows = run.rows[(run.rows["layer"] == BACK_TO_BACK) & run.rows["value"].notna()]
    counts = sorted(rows.loc[rows["quantity"] == "window_start", "n"].unique())
    if not counts:
        return rows[:0]
    n = SHOWN_COUNT if SHOWN_COUNT in counts else counts[-1]
    rows = rows[(rows["n"] == n) & rows["quantity"].isin(["window_start", "window"])]
    table = rows.pivot(index=["block", "method"], columns="quantity", values="value").dropna().reset_index()
    sizes = table.groupby("block")["method"].nunique()
    table = table[table["block"] == sizes[sizes == sizes.max()].index.min()]
    return table.assign(n=int(n), start=table["window_start"], end=table["window_start"] + table["window"])


REPORT = StudyReport(
    numbers=(
        no_energy,
        sensor,
        quality.windows,
        quality.agreement,
        quality.above_idle,
        quality.capped,
        quality.sampling_cost,
        ratios.back_to_back,
        ratios.noise,
        ratios.paced,
        ratios.paced_facts,
        ratios.idle_shares,
    ),
    series=(traces,),
    of_runs=(power_shown,),
    of_published=(published_ratios, linted),
    tables={
        "power": tables.ENERGY,
        "power_decomposition": tables.decomposition,
        "power_checks": tables.checks,
        "power_paced": tables.PACED_TABLE,
    },
    figures={
        "power_traces": Chart(
            figures.draw_traces,
            "Power as its sensor gave it: the power-on test, whose four phases are judged, and one round of windows; "
            "shaded where frames and energy were counted.",
            published=True,
            footer=footer,
        ),
        "energy_per_frame": Chart(
            figures.draw_energy,
            "Energy per frame over the number of boxes, published for the Jetson's module and measured on boards; "
            "dotted: net of idle.",
            published=True,
            footer=footer,
        ),
        "power_pareto": Chart(
            figures.draw_pareto,
            "Mean power against time per frame; numbers of boxes are joined in grey, dotted lines have equal energy.",
            published=True,
            footer=footer,
        ),
        "power_decomposition": Chart(
            draw_decomposition,
            "Ratios of energy taken apart: on the logarithmic axis the bars of time and power add up to that of "
            "energy. Where a voltage was read as power, the bar of power is missing.",
            published=True,
            footer=footer,
        ),
    },
    indexed=("trace", "window_start"),
    windows=True,
    vetted=vetted,
)
