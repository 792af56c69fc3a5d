"""What ``octopus power-selftest`` leaves behind: the record, the trace, and a plot with the verdict above it."""

from __future__ import annotations

import csv
import json
import textwrap
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.measure._files import atomic_text
from octopus_study.names import POWER_SCOPES, human
from octopus_study.power.judges import LOAD, levels
from octopus_study.power.selftest import SelfTest
from octopus_study.power.session import Trial
from octopus_study.report.charts import palette, style

STEM = "power_selftest"
COLUMNS = ("seconds", "phase", "power_w", "counter", "counter_unit")
_SHADES = {"idle": palette.LIGHT, LOAD: palette.SKY}


def write_trial(trial: Trial, out_dir: Path) -> list[Path]:
    """Write the record as JSON and, of the test that decided, the trace as CSV and the plot as PDF and PNG.

    Where no sensor could be opened there is no test, and the record alone says why.
    """
    record = out_dir / f"{STEM}.json"
    with atomic_text(record) as stream:
        json.dump(trial.record(), stream, indent=2, allow_nan=False)
        stream.write("\n")
    if trial.selftest is None:
        return [record]
    return [record, write_trace(trial.selftest, out_dir), *plot(trial.selftest, out_dir)]


def write_trace(test: SelfTest, out_dir: Path) -> Path:
    """Write every reading of the test as CSV; a reading that failed has no row."""
    path, zero = out_dir / f"{STEM}.csv", _zero(test)
    with atomic_text(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for sample in test.trace.samples:
            power = "" if sample.power is None else f"{sample.power.watts:.6g}"
            counter = ("", "") if sample.counter is None else (sample.counter.value, sample.counter.unit)
            seconds = f"{(sample.at_ns - zero) * 1e-9:.4f}"
            writer.writerow([seconds, _phase_at(test, sample.at_ns), power, *counter])
    return path


def plot(test: SelfTest, out_dir: Path) -> tuple[Path, Path]:
    """Draw the trace with its four phases shaded, and the verdict as its title; return the PDF and the PNG."""
    with mpl.rc_context(style.RC):
        figure = _figure(test)
        facts = [human(POWER_SCOPES, test.scope), f"{len(test.trace.samples)} readings"]
        if test.update_seconds is not None:
            facts.append(f"a new value each {test.update_seconds * 1e3:.3g} ms")
        area = style.finish(figure, f"Power-on test: {', '.join(facts)}.", synthetic=False)
    return style.save(figure, out_dir / STEM, area)


def _figure(test: SelfTest) -> Figure:
    result, axes = style.new_figure(2.6)
    axis, zero = axes[0, 0], _zero(test)
    for phase in test.phases:
        start, end = ((at - zero) * 1e-9 for at in (phase.start_ns, phase.end_ns))
        axis.axvspan(
            start, end, color=_SHADES[phase.name], alpha=0.4, linewidth=0, label=f"{phase.name}, judged"
        )
        if phase.levels:
            axis.hlines(
                phase.mean,
                start,
                end,
                color=palette.VERMILION,
                linestyles="--",
                label="mean of the phase",
                zorder=3,
            )
    points = levels(test.trace)
    axis.plot(
        [(at - zero) * 1e-9 for at, _ in points],
        [power.watts for _, power in points],
        color=palette.BLUE,
        linewidth=1.0,
        label="power, means of 50 ms",
    )
    if test.trace.failures:
        failed = [(each.at_ns - zero) * 1e-9 for each in test.trace.failures]
        axis.plot(
            failed, [0.0] * len(failed), "x", color=palette.BLACK, clip_on=False, label="failed reading"
        )
    _dress(axis, test)
    style.bottom_legend([axis], 5)
    return result


def _dress(axis: Axes, test: SelfTest) -> None:
    verdict = "Power-on test passed" if not test.failed else f"Unavailable: {test.reason}"
    axis.set_title(textwrap.fill(verdict, 95))
    axis.set(xlabel="Time since the first reading (s)", ylabel="Power (W)")
    axis.margins(x=0.01)
    axis.set_ylim(0, 1.12 * max((power.watts for _, power in levels(test.trace)), default=1.0) or 1.0)


def _zero(test: SelfTest) -> int:
    return test.trace.samples[0].at_ns if test.trace.samples else test.phases[0].start_ns


def _phase_at(test: SelfTest, at_ns: int) -> str:
    """Return the phase that a reading is judged with; empty between two phases."""
    inside = [phase.name for phase in test.phases if phase.start_ns <= at_ns <= phase.end_ns]
    return inside[0] if inside else ""
