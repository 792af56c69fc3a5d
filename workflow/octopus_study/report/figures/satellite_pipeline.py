"""What a scene takes to the ground, whole and rule by rule, and what judging its tiles takes before."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import satellite
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels_edge import SCENES, TILE_METHODS, TILE_RULES, VARIANTS
from octopus_study.report.numbers import Numbers
from octopus_study.report.satellite import NO_RUN, STUDY
from octopus_study.report.text import quantity_text

__all__ = ["NO_RUN", "REAL_DATA", "STUDY", "figure"]
REAL_DATA = "Sentinel-2"
_BAR = 0.19  # inches, or the part of a bar group that one bar takes
_ALL = "All tiles"
_VARIANT = "rgb8"  # as published
# In the order of the bars: the whole scene, and what the fixed threshold keeps of it.
_PUBLISHED = (
    "published.device_independent_facts.satellite-8192.downlink_time",
    "published.satellite.greenland.kept_downlink_time",
)


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per scene above, and one per machine below."""
    scopes = satellite.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], satellite.NO_TILES)
    scenes = _scenes(numbers, scopes)
    timed = {scope: found for scope in scopes if (found := satellite.timed(numbers, scope))}
    notes = " ".join(
        filter(None, (_note(numbers, scope, _shown(found)[1]) for scope, found in timed.items()))
    )
    heights = [2.0, 0.9 + _BAR * len(satellite.METHODS)] if timed else [2.0]
    result, parts, legend = style.stacked(heights, 0.25, notes)
    above = parts[0].subplots(1, len(scenes), squeeze=False)[0]
    for place, (axis, (title, start)) in enumerate(zip(above, scenes.items(), strict=True)):
        _downlink(axis, numbers, start)
        axis.set_title(textwrap.fill(title, 104 // len(scenes)), fontsize=7.2, fontweight="normal")
        if place == 0:
            axis.set_ylabel("Time to the ground (s)")
    below = parts[1].subplots(1, len(timed), squeeze=False)[0] if timed else []
    for place, (axis, (scope, found)) in enumerate(zip(below, timed.items(), strict=True)):
        _processing(axis, numbers, scope, found)
        if place:
            axis.set_yticklabels([])
    style.legend_of(legend, list(above), 5)
    return result


def _scenes(numbers: Numbers, scopes: list[str]) -> dict[str, str]:
    """Return the start of ids of each scene; what it takes to the ground is the same on every machine."""
    found: dict[str, str] = {}
    for scope in scopes:
        starts = satellite.prefixes(numbers, scope)
        for scene in dict.fromkeys(scene for scene, _ in starts):
            variant = _VARIANT if (scene, _VARIANT) in starts else "uint16"
            number = numbers[f"{starts[scene, variant]}.scene.tiles.deterministic"]
            stand_in = ", generated" if "synthetic-" in number.dataset else ""
            title = f"{SCENES[scene]}{stand_in}, {number.text} tiles, {VARIANTS[variant]}"
            found.setdefault(title, starts[scene, variant])
    return found


def _downlink(axis: Axes, numbers: Numbers, start: str) -> None:
    """Draw a bar for everything, and one for what each rule keeps, with its share of the bytes; marks where the source
    has a value for the same scene."""
    keys = {_ALL: "scene.scene_downlink_time"}
    keys |= {TILE_RULES[rule]: f"{rule}.kept_downlink_time" for rule in satellite.RULES}
    colors = [style.LIGHT, *(style.RULE_COLORS[rule] for rule in satellite.RULES)]
    times = [numbers.value(f"{start}.{key}.deterministic") for key in keys.values()]
    for place, (label, color, time) in enumerate(zip(keys, colors, times, strict=True)):
        if time == time:
            axis.bar(place, time, width=0.74, color=color, label=label)
            share = f"\n{100 * time / times[0]:.2g} %" if place and times[0] == times[0] else ""
            text = f"{quantity_text(time, 's')}{share}"
            options = {"ha": "center", "va": "bottom", "fontsize": 5.8, "textcoords": "offset points"}
            axis.annotate(text, (place, time), (0, 2), **options)
    if ".full-rgb8." in start:
        published = [numbers.value(key) for key in _PUBLISHED]
        look = {"markerfacecolor": "white", "markeredgecolor": style.BLACK, "label": "As published"}
        beside = [place + 0.5 for place in range(len(published))]
        axis.plot(beside, published, "D", markersize=4, **look)
    axis.set(xticks=[], xlim=(-0.6, len(keys) - 0.4), ylim=(0, 1.22 * np.nanmax(times)))
    axis.grid(axis="x", visible=False)


def _shown(found: dict[tuple[str, str], str]) -> tuple[tuple[str, str], str]:
    """Return the timed scene that is shown: the one with most tiles, in three channels of bytes if there are some."""
    return max(found.items(), key=lambda item: (int(item[1].rpartition(".n")[2]), item[0][1] == _VARIANT))


def _processing(axis: Axes, numbers: Numbers, scope: str, found: dict[tuple[str, str], str]) -> None:
    pair, start = _shown(found)
    times = {name: satellite.time_of(numbers, start, name) for name in satellite.METHODS}
    known = {name: number for name, number in times.items() if number}
    left = min(number.value for number in known.values()) / 2
    highest = max(number.value for number in known.values())
    for position, name in enumerate(satellite.METHODS):
        number = known.get(name)
        if number is None:
            axis.annotate(
                "\u2013", (left, position), (3, 0), textcoords="offset points", va="center", fontsize=7
            )
            continue
        options = {"ecolor": style.BLACK, "elinewidth": 0.8, "capsize": 1.3}
        color = style.METHOD_COLORS.get(name, style.GREY)
        axis.barh(
            position,
            number.value - left,
            left=left,
            height=0.7,
            color=color,
            xerr=style.errors([number]),
            error_kw=options,
        )
        end = number.high if number.high == number.high else number.value
        text = quantity_text(number.value, "ms")
        axis.annotate(text, (end, position), (3, 0), textcoords="offset points", va="center", fontsize=6)
    axis.set(xscale="log", xlabel=f"{VARIANTS[pair[1]]} to flags (ms)".capitalize())
    axis.set_xlim(left, highest * (highest / left) ** 0.4)
    axis.set_ylim(len(satellite.METHODS) - 0.4, -0.6)
    axis.set_yticks(
        range(len(satellite.METHODS)), [TILE_METHODS[name] for name in satellite.METHODS], fontsize=6.5
    )
    style.plain_log(axis.xaxis, narrow=True)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    title = f"{scope_name(numbers, scope)}\n{SCENES[pair[0]]}"
    axis.set_title(title, fontsize=7.2, fontweight="normal")


def _note(numbers: Numbers, scope: str, start: str) -> str:
    """Name the methods that a machine has no time of."""
    missing = [
        TILE_METHODS[name] for name in satellite.METHODS if satellite.time_of(numbers, start, name) is None
    ]
    return f"No time on {scope_name(numbers, scope)}: {'; '.join(missing)}." if missing else ""
