"""What ``octopus power-selftest`` leaves behind: the record, the trace, and a plot with the verdict above it."""

import csv
import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

from octopus_study.measure._files import atomic_text
from octopus_study.names import POWER_SCOPES, human
from octopus_study.power.judges import levels
from octopus_study.power.selftest import SelfTest
from octopus_study.power.session import Attempt
from octopus_study.report.charts import style
from octopus_study.report.charts.palette import BLACK, GREEN, GREY
from octopus_study.report.text import quantity_text

# The phases of the test, as spans of the trace show them.
_SPANS = {"idle": (GREY, "Idle"), "load": (GREEN, "Known load")}
STEM = "power_selftest"
COLUMNS = ("seconds", "phase", "power_w", "counter", "counter_unit")


def write_trial(attempts: Sequence[Attempt], reason: str, out_dir: Path) -> list[Path]:
    """Write what `try_sensors` gave as JSON and, of the deciding test, the trace as CSV and the plot as PDF and PNG.
    The test that decided is the one that passed, else the last that was made. Where no sensor could be opened there is
    none, and the record alone says why."""
    record = out_dir / f"{STEM}.json"
    test = next((each.selftest for each in reversed(attempts) if each.selftest), None)
    content = {
        "passed": not reason,
        "reason": reason,
        "looked_at": {each.spec.kind: each.reason or "passed" for each in attempts},
        "selftest": test.record() if test else None,
    }
    with atomic_text(record) as stream:
        json.dump(content, stream, indent=2, allow_nan=False)
        stream.write("\n")
    return [record, write_trace(test, out_dir), *plot(test, out_dir)] if test else [record]


def write_trace(test: SelfTest, out_dir: Path) -> Path:
    """Write every reading of the test as CSV, with the phase that it is judged in; a failed reading has no row."""
    path = out_dir / f"{STEM}.csv"
    with atomic_text(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for sample in test.trace.samples:
            counter = ("", "") if sample.counter is None else (sample.counter.value, sample.counter.unit)
            inside = [phase.name for phase in test.phases if phase.start_ns <= sample.at_ns <= phase.end_ns]
            seconds = f"{(sample.at_ns - test.trace.samples[0].at_ns) * 1e-9:.4f}"
            writer.writerow([seconds, *(inside or [""]), f"{sample.power.watts:.6g}", *counter])
    return path


def plot(test: SelfTest, out_dir: Path) -> tuple[Path, Path]:
    """Draw the trace with its four phases shaded, and the verdict as its title; return the PDF and the PNG."""
    points = levels(test.trace) or ((test.phases[0].start_ns, None),)
    watts = [power.watts if power else 0.0 for _, power in points]
    spans = [(phase.name, phase.start_ns * 1e-9, phase.end_ns * 1e-9, phase.mean) for phase in test.phases]
    with mpl.rc_context(style.RC):
        figure, axes = style.new_figure(2.6)
        axis = axes[0, 0]
        _draw(axis, [at * 1e-9 for at, _ in points], watts, spans)
        failed = [(each.at_ns - points[0][0]) * 1e-9 for each in test.trace.failures]
        axis.plot(failed, [0.0] * len(failed), "x", clip_on=False, label="Failed reading")
        verdict = f"Unavailable: {test.reason}" if test.failed else "Power-on test passed"
        axis.set_title(textwrap.fill(verdict, 95))
        axis.set_ylabel("Power (W)")
        axis.set_ylim(0, 1.12 * max(watts) or 1.0)
        style.bottom_legend([axis], 5)
        facts = [human(POWER_SCOPES, test.scope), f"{len(test.trace.samples)} readings"]
        if test.update_seconds is not None:
            facts.append(f"a new value each {test.update_seconds * 1e3:.3g} ms")
        area = style.finish(figure, f"Power-on test: {', '.join(facts)}.", synthetic=False)
    return style.save(figure, out_dir / STEM, area)


def _draw(axis: Axes, seconds: Sequence[float], watts: Sequence[float], spans: Iterable[tuple]) -> None:
    """Draw power over time from the first point on, and spans of it, each with a name, its ends and its mean power."""
    zero = seconds[0]
    axis.plot([at - zero for at in seconds], watts, color=BLACK, linewidth=0.7)
    for name, start, end, mean in spans:
        color, label = _SPANS[name]
        axis.axvspan(start - zero, end - zero, color=color, alpha=0.22, linewidth=0, label=label)
        if mean is not None and mean == mean:
            axis.plot([start - zero, end - zero], [mean] * 2, color=BLACK, linewidth=1.2)
            where = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center", "fontsize": 6}
            axis.annotate(quantity_text(mean, "W"), ((start + end) / 2 - zero, mean), **where)
    axis.set(xlabel="Time (s)")
