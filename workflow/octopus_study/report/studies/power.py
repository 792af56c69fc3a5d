"""Power and energy: the sensor and its windows, ratios of energies as time ratio times power ratio, and what the
published tables say.

Energy per frame is time per frame times mean power, so the ratio of two energies is the product of two other ratios. A
table in which the power's ratio is always one has measured time twice. There are as many windows as rounds, five or a
few more: too few for a bootstrap. Each is a mean over hundreds of frames, so that the logarithms of its ratios are
close to normal: values are geometric means, intervals Student's t of the mean logarithm.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import stdev
from typing import Any

import numpy as np

from octopus_study.measure.dependence import process_count
from octopus_study.measure.rows import COLUMNS, one_line
from octopus_study.measure.statistics import mean_interval
from octopus_study.names import AGAIN, POWER_SCOPES, POWER_SENSORS, PUBLISHED_PAIR, PUBLISHED_POWER, SUBJECT, human
from octopus_study.report import captions
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number, make_absent, make_number, make_text, published
from octopus_study.report.machines import place_name, run_list, shown
from octopus_study.report.runs import DataFrame, Run, cached
from octopus_study.report.samples import Group, groups, paired, pivot
from octopus_study.report.selector import ALL_ROWS, PROVENANCE, either, where
from octopus_study.report.studies import power_shown as look
from octopus_study.report.studies.power_shown import BACK_TO_BACK, PACED, PAIRS, PARTS, STUDY
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.text import quantity_text
from octopus_study.status import MethodStatus

# The table that multiplies voltage and current, and the one that took a voltage for a power.
TABLES = (STUDY, "power_voltage_misread")
LINTED = (*TABLES, "power_voltage_relabelled")
LAYERS = (BACK_TO_BACK, PACED)
TWICE = (SUBJECT, f"{SUBJECT}{AGAIN}")
_NOTE = "paired windows, Student's t over the logarithms of their ratios"


def vetted(run: Run) -> Run:
    """Return the run; where the linter refuses it, with one unavailable row per method and count in place of its rows,
    so that neither a figure nor a number can show a part of it."""
    from octopus_study.power.lint import lint_file  # needs pandas, which figures do without

    findings = lint_file(run.source)
    if not findings:
        return run
    more = f" ({len(findings) - 1} more)" if len(findings) > 1 else ""
    why = one_line(f"refused by the results linter, {findings[0].check}: {findings[0].message}{more}")
    rows = run.rows[run.rows["layer"].isin(LAYERS)]
    rows = rows.drop_duplicates(["dataset", "workload", "n", "method", "layer"])
    kept = {"quantity": "energy_per_frame", "unit": "mJ", "block": 0, "value": math.nan}
    rows = rows.assign(**kept, status=MethodStatus.UNAVAILABLE, reason=why)
    return replace(run, rows=rows[list(COLUMNS)].reset_index(drop=True))


def scope_of(run: Run) -> str:
    """Return what the run's energies are the energies of; empty where there is none."""
    known = run.rows[run.rows["value"].notna() & (run.rows["quantity"] == "energy_per_frame")]
    return str(known["scope"].iloc[0]) if len(known) else ""


def _why_none(run: Run) -> str:
    reasons = run.rows.loc[run.rows["value"].isna(), "reason"]
    return str(reasons.iloc[0]) if len(reasons) else "its rows hold no energy"


def _brief(why: str) -> str:
    """Return a reason without the list of where a sensor was looked for."""
    return why.partition(" (looked at ")[0].strip()


def _record(run: Run) -> dict[str, Any]:
    return (run.provenance.get("extra") or {}).get("power") or {}


def no_energy(run: Run) -> Iterator[Number]:
    """Yield the reason of a run without energies; where a claim asks for a ratio, it finds the reason too."""
    if scope_of(run):
        return
    why = _why_none(run)
    names = {"unavailable": why, "unavailable_brief": _brief(why), "sensor.title": _brief(why)}
    for name, text in names.items():
        yield make_text(run.fact_key(name), run.from_rows("", PROVENANCE), text)
    rows = run.rows[run.rows["layer"].isin(LAYERS) & (run.rows["method"] == PUBLISHED_PAIR[0])]
    for row in rows.drop_duplicates(["workload", "n", "layer"]).itertuples():
        key = run.key(row.workload, row.n, row.method, quantity=f"over_{PUBLISHED_PAIR[1]}", layer=row.layer)
        source = run.from_rows(row.dataset, f"n={row.n}, layer={row.layer}")
        yield make_absent(key, source, "ratio", _brief(why))


def sensor(run: Run) -> Iterator[Number]:
    """Yield what the run's energies are the energies of, and by which sensor."""
    scope = scope_of(run)
    if not scope:
        return
    device, test = _record(run).get("source") or {}, _record(run).get("selftest") or {}
    name = human(POWER_SENSORS, str(device.get("name", "sensor")))
    period = test.get("update_seconds")
    updates = f", new value every {quantity_text(1000 * period, 'ms')}" if period else ""
    source = run.from_rows("", PROVENANCE)
    yield make_text(run.fact_key("sensor.scope"), source, scope)
    title = f"{name}, {human(POWER_SCOPES, scope)}{updates}"
    yield make_text(run.fact_key("sensor.title"), source, title)


def power_shown(runs: list[Run]) -> Iterator[Number]:
    """Yield on which machines energy was measured, and on which not and why."""
    measured = [run for run in runs if scope_of(run)]
    parts = [f"Energies shown are of {run_list(measured, runs)}."] if measured else []
    for run in runs:
        if not scope_of(run):
            parts.append(f"No energy was measured on {place_name(run, runs)}: {_brief(_why_none(run))}.")
    yield shown(runs, "energy", " ".join(parts), ALL_ROWS)
    if measured:
        yield shown(runs, "measured", "; ".join(place_name(run, runs) for run in measured), ALL_ROWS)


def _windows(run: Run) -> DataFrame:
    """Return one table of all windows: layer, n, method, block, and a column per quantity."""
    rows = run.rows[run.rows["layer"].isin((*LAYERS, "idle")) & run.rows["value"].notna()]
    table = rows.pivot(index=["layer", "n", "method", "block"], columns="quantity", values="value")
    ways = ("window_energy_counter", "window_energy_integral")
    columns = ["energy_per_frame", "power_mean", *ways, "window_start", "window", "frames"]
    return table.reindex(columns=columns).reset_index()


def windows(run: Run) -> Iterator[Number]:
    """Yield how many windows have an energy, how far counter and integral differ, and load over idle."""
    if not scope_of(run):
        return
    table = _windows(run)
    work, back = table[table["layer"].isin(LAYERS)], table[table["layer"] == BACK_TO_BACK]
    chosen = where(quantity="energy_per_frame", layer=LAYERS)
    count = work["energy_per_frame"].count()
    yield _fact(run, "windows", "count", count, "windows with an energy", chosen)
    ways = ["window_energy_counter", "window_energy_integral"]
    apart = (work[ways[0]] / work[ways[1]] - 1).abs().dropna()
    if len(apart):
        note = f"largest |counter / integral - 1| of {len(apart)} windows"
        yield _fact(run, "counter_agreement", "fraction", apart.max(), note, where(quantity=ways, layer=LAYERS))
    idle = table[(table["layer"] == "idle") & (table["method"] == "idle")]
    at_idle = where(quantity="power_mean", layer="idle", method="idle")
    over = (back.groupby("n")["power_mean"].min() / idle.groupby("n")["power_mean"].max()).dropna()
    if len(over):
        both = either([where(quantity="power_mean", layer=BACK_TO_BACK), at_idle])
        note = "least load / highest idle of the same n"
        yield _fact(run, "least_load_over_idle", "ratio", over.min(), note, both)
    if idle["power_mean"].notna().any():
        median = idle["power_mean"].median()
        yield _fact(run, "idle", "W", median, "median of the idle windows", at_idle)


def _fact(run: Run, name: str, unit: str, value: float, note: str, chosen: str) -> Number:
    dataset = next((name for name in run.datasets if name not in ("n/a", "none")), "n/a")
    return make_number(run.fact_key(name), run.from_rows(dataset, chosen), unit, float(value), note=note)


def capped(run: Run) -> Iterator[Number]:
    """Yield for which share of the time each method is held at the power limit: of a window with the settling before it
    and the tail behind it, by the violation counter."""
    for group, rows in groups(run, quantity="power_capped", layer=BACK_TO_BACK):
        shares = rows.groupby("method")["value"].median().dropna()
        for method, share in shares.drop(TWICE[1], errors="ignore").items():
            key = run.key(group.workload, int(group.n), method, quantity="capped_share")
            note = "share of the time at the power limit, window with settling and tail, median of the windows"
            yield make_number(key, group.rows_of(run, method), "fraction", float(share), note=note)


def sampling_cost(run: Run) -> Iterator[Number]:
    """Yield time per frame with the sampler running over that without it."""
    pair, quantity = (f"{SUBJECT}-sampled", f"{SUBJECT}-unsampled"), "time_per_frame"
    rows = run.rows[run.rows["method"].isin(pair) & (run.rows["quantity"] == quantity)]
    both = paired(pivot(rows), *pair)
    if len(both):
        source = run.from_rows(rows["dataset"].iloc[0], where(method=pair, quantity=quantity))
        note = f"{quantity} with the sampling process / without it, {len(both)} pairs"
        yield make_number(run.fact_key("sampling_cost"), source, "ratio", *_ratio(_logs(both, pair)), note=note)


def _logs(table: DataFrame, pair: tuple[str, str]) -> np.ndarray:
    return np.log(table[pair[0]].to_numpy() / table[pair[1]].to_numpy())


def _ratio(logs: np.ndarray) -> tuple[float, float, float]:
    """Return the geometric mean of ratios and the ends of its interval of 95 %."""
    return tuple(map(math.exp, mean_interval(logs)[:3]))


def _energies(run: Run, layer: str) -> Iterator[tuple[Group, DataFrame]]:
    for group, rows in groups(run, quantity="energy_per_frame", layer=layer):
        yield group, pivot(rows)


Ratios = dict[str, tuple[float, float, float]]


@cached
def _pairs(run: Run) -> Iterator[tuple[Group, tuple[str, str], Ratios, int, int]]:
    """Yield the ratios of every two methods that share windows back to back, Octopus entered twice among them, how many
    windows, and of how many processes."""
    for group, energies in _energies(run, BACK_TO_BACK):
        chosen = groups(run, **(group._asdict() | {"quantity": "time_per_frame"}))
        times = next((pivot(rows) for _, rows in chosen), energies[:0])
        for pair in (*PAIRS, TWICE):
            both = [paired(table, *pair) for table in (times, energies)]
            rounds = both[0].index.intersection(both[1].index)
            if len(rounds) > 1:
                time, energy = (_logs(table.loc[rounds], pair) for table in both)
                parts = dict(zip(PARTS, map(_ratio, (time, energy - time, energy)), strict=True))
                yield group, pair, parts, len(rounds), process_count(both[0].loc[rounds])


def ratios(run: Run) -> Iterator[Number]:
    """Yield the three ratios of every pair and count; of the published pair also what is saved."""
    for group, pair, parts, *rests in _pairs(run):
        if pair == TWICE:
            continue
        note, source = f"{pair[0]} / {pair[1]}, {rests[0]} {_NOTE}", _both(run, group, pair)
        for name, ends in parts.items():
            yield make_number(_over(run, group, pair, name), source, "ratio", *ends, *rests, note=note)
        for name, ends in _changes(parts).items() if pair == PUBLISHED_PAIR else ():
            yield make_number(_over(run, group, pair, name), source, "fraction", *ends, *rests, note=note)


def _over(run: Run, group: Group, pair: tuple[str, str], part: str) -> Key:
    return group.key(run, pair[0]).but(quantity=f"over_{pair[1]}", derived=part)


def _both(run: Run, group: Group, pair: tuple[str, str]) -> Any:
    """Return the rows of times and energies of a pair."""
    return group._replace(quantity=f"{group.quantity} and time_per_frame").rows_of(run, " and ".join(pair))


def _changes(parts: Ratios) -> Ratios:
    """Return the ratios as what is saved or added, each with the ends of its interval in ascending order."""
    (time, low, high), power = parts["time"], parts["power"]
    energy = parts["energy"]
    return {
        "time_saved": (1 - time, 1 - high, 1 - low),
        "energy_saved": (1 - energy[0], 1 - energy[2], 1 - energy[1]),
        "power_added": (power[0] - 1, power[1] - 1, power[2] - 1),
        "longer": (1 / time - 1, 1 / high - 1, 1 / low - 1),
    }


def noise(run: Run) -> Iterator[Number]:
    """Yield by how much time, power and energy of one method under two names seem to differ: the end of the interval
    that lies farther from 1, as a fraction."""
    for group, pair, parts, count, _ in _pairs(run):
        for name, (_, low, high) in parts.items() if pair == TWICE else ():
            key = run.key(group.workload, int(group.n), quantity=f"{name}_noise_floor")
            floor = math.expm1(max(abs(math.log(low)), abs(math.log(high))))
            note = f"{' against '.join(pair)}, {count} {_NOTE}; the farther end of the interval"
            yield make_number(key, _both(run, group, pair), "fraction", floor, note=note)


def paced(run: Run) -> Iterator[Number]:
    """Yield the ratios of energies at a fixed frame rate, where time is given, and that rate as the windows counted
    it."""
    for group, energies in _energies(run, PACED):
        for pair in PAIRS:
            both = paired(energies, *pair)
            if len(both) > 1:
                note = f"{pair[0]} / {pair[1]}, {len(both)} {_NOTE}"
                key, source = _over(run, group, pair, "energy"), group.rows_of(run, " and ".join(pair))
                yield make_number(key, source, "ratio", *_ratio(_logs(both, pair)), len(both), note=note)
    table = _windows(run)
    rates = (table["frames"] / table["window"])[table["layer"] == PACED].dropna()
    if len(rates):
        rate = f"{round(float(rates.median()), 1):g}"
        yield make_text(run.fact_key("frame_rate"), run.from_rows("", "layer=paced"), rate)


def published_ratios(frame: Frame) -> Iterator[Number]:
    """Yield the time, power and energy of one launch over N, how much of the energy's ratio is not the time's, and the
    highest power under load over idle: below one is the plainest symptom of a table that is wrong. Energy is time x
    power throughout, since the wrong table prints no energies."""
    for table in TABLES:
        logs, loads, where = [], [], Key(PUBLISHED, "derived", table)
        for n in look.published_counts(frame, table):
            time, power = (
                [frame[published(table, f"n{n}", name, part)] for name in PUBLISHED_POWER.values()]
                for part in ("time", "power")
            )
            ratio = {"time": time[0].value / time[1].value, "power": power[0].value / power[1].value}
            ratio["energy"] = ratio["time"] * ratio["power"]
            logs.append(math.log(ratio["power"]))
            loads += [number.value for number in power]
            changes = _changes({name: (value, value, value) for name, value in ratio.items()})
            for name, value in (ratio | {name: ends[0] for name, ends in changes.items()}).items():
                note = f"{' over '.join(PUBLISHED_POWER.values())}, energy = time x power"
                unit = "ratio" if name in PARTS else "fraction"
                yield _derived(time[0], where.but(n=n, quantity=name), unit, value, note)
        if len(logs) > 1:
            note, text = "standard deviation over n of log(energy ratio / time ratio)", f"{stdev(logs):.2g}"
            yield _derived(time[0], where.but(quantity="identity"), "text", stdev(logs), note, text)
        idle = frame.get(published(table, "n0", "idle", "power"))
        if idle and loads:
            key, highest = where.but(quantity="highest_load_over_idle"), max(loads) / idle.value
            yield _derived(idle, key, "ratio", highest, "highest load / idle")


def linted(frame: Frame) -> Iterator[Number]:
    """Yield the linter's verdict on each published power table, with the checks that refuse it."""
    from octopus_study.power.lint import lint_file

    for table in LINTED:
        first = frame.get(published(table, "n0", "idle", "power"))
        if first is not None:
            findings = lint_file(first.file)
            checks = ", ".join(dict.fromkeys(finding.check for finding in findings))
            text = f"refused ({checks})" if findings else "accepted"
            key = Key(PUBLISHED, "derived", table, quantity="linter")
            yield _derived(first, key, "text", math.nan, findings[0].message if findings else "", text)


def _derived(source: Number, key: Key, unit: str, value: float, note: str, text: str | None = None) -> Number:
    whole = source.source._replace(selector=ALL_ROWS)
    return make_number(key, whole, unit, value, text=text, note=note)


REPORT = StudyReport(
    numbers=(no_energy, sensor, windows, capped, sampling_cost, ratios, noise, paced),
    of_runs=(power_shown,),
    of_published=(published_ratios, linted),
    tables={"power": look.ENERGY, "power_paced": look.PACED_TABLE},
    figures={
        "power_decomposition": Chart(
            look.draw_decomposition, captions.FIGURES["power_decomposition"], published=True, footer=look.footer
        )
    },
    indexed=("trace", "window_start"),
    windows=True,
    vetted=vetted,
)
