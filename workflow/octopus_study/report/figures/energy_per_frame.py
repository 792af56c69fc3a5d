"""Energy per frame over the number of boxes, with the published curve of the Jetson beside the measured ones."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import power
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import POWER_SCOPES, human
from octopus_study.report.numbers import Numbers
from octopus_study.report.power import Arm, footer

STUDY = power.STUDY
# Published values are drawn also where nothing was measured.
WITHOUT_RUN = True
_NET = {"linestyle": ":", "marker": "", "capsize": 0}

__all__ = ["STUDY", "WITHOUT_RUN", "figure", "footer"]


def figure(numbers: Numbers) -> Figure:
    """Draw the published table, and one panel per machine that has energies; the others are named below."""
    scopes = power.measured(numbers)
    result, parts, legend = style.stacked([2.6], 0.3, power.figure_note(numbers))
    axes = parts[0].subplots(1, 1 + len(scopes), squeeze=False, sharey=True)[0]
    _published(axes[0], numbers)
    for axis, scope in zip(axes[1:], scopes, strict=True):
        _measured(axis, numbers, scope)
    axes[0].set_ylabel("Energy per frame (mJ)")
    style.plain_log(axes[0].yaxis)
    options = {"title": "Dotted: net of idle", "title_fontsize": 7} if scopes else {}
    style.legend_of(legend, list(axes[::-1]), 3, **options)
    return result


def _published(axis: Axes, numbers: Numbers) -> None:
    for method in ("published", "n-launches"):
        _line(
            axis,
            power.published_arms(numbers, method),
            method,
            power.method_name(method),
            markerfacecolor="white",
        )
    _finish(axis, power.published_counts(numbers), f"{power.JETSON}\n(module, VDD_IN)")


def _measured(axis: Axes, numbers: Numbers, scope: str) -> None:
    for method in power.METHODS:
        _line(axis, power.arms(numbers, scope, method), method, power.method_name(method))
        _line(axis, power.arms(numbers, scope, method, "energy_per_frame_net"), method, "_net", **_NET)
    of = human(POWER_SCOPES, power.sensor_scope(numbers, scope))
    _finish(axis, power.counts(numbers, scope), f"{scope_name(numbers, scope)}\n({of})")


def _line(axis: Axes, arms: list[Arm], method: str, label: str, **look: object) -> None:
    if not arms:
        return
    spans = [style.errors([arm.energy]) for arm in arms]
    axis.errorbar(
        [arm.n for arm in arms],
        [arm.energy.value for arm in arms],
        yerr=[[span[side][0] for span in spans] for side in (0, 1)],
        label=label,
        color=style.METHOD_COLORS[method],
        **({"marker": style.METHOD_MARKERS[method], "capsize": 1.5} | look),
    )


def _finish(axis: Axes, counts: list[int], title: str) -> None:
    axis.set_xlim(counts[0] / 1.25, counts[-1] * 1.25)
    axis.set(xscale="log", yscale="log", xlabel="Boxes per frame")
    axis.set_xticks(counts, [str(n) for n in counts], fontsize=6.5, rotation=45)
    axis.set_xticks([], minor=True)
    axis.set_title(title)
