"""What takes all measured and published numbers together: whether published gains survive a fair lookup table, where a
reused table stands after the published numbers of uses, and which scene the picture shows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.report import satellite, total_cost
from octopus_study.report.derive.total_cost import PUBLISHED_TABLE
from octopus_study.report.labels import IMAGE_KERNELS
from octopus_study.report.labels_edge import SCENES
from octopus_study.report.numbers import Number, Numbers, make_number

# A gain of the study of total cost -> the stage of the published one.
_STAGES = {"setup": "setup", "upload": "h2d", "total": "total", "without_download": "total-without-d2h"}
_FORMS = {
    PUBLISHED_TABLE: "filled image by image",
    "lookup-vectorised": "filled by one call",
    "lookup-device": "built on the device",
}


def cost_numbers(numbers: Numbers) -> Iterator[Number]:
    for scope in numbers.scopes("total_cost"):
        for name, stage in _STAGES.items():
            published = numbers.get(f"published.pipeline_gain.{stage}.gain")
            if published is not None:
                yield from _survives(numbers, scope, name, published)
        yield from _reuse(numbers, scope)


def pictures(numbers: Numbers) -> Iterator[Number]:
    """Yield ``shown.satellite.picture``: what the picture shows, with what must stand under it."""
    picture = satellite.picture(numbers)
    if picture is not None:
        width, height = picture.size
        tiles = numbers[f"{picture.scope}.{satellite.STUDY}.picture.{picture.scene}.tiles"]
        where = (tiles.role, tiles.machine, tiles.dataset, tiles.source)
        name = SCENES.get(picture.scene, picture.scene)
        text = f"{name}, {width} \u00d7 {height} px, {len(picture.tiles)} tiles. {picture.attribution}."
        yield make_number("shown.satellite.picture", where, tiles.selector, "text", math.nan, text=text)


def _survives(numbers: Numbers, scope: str, name: str, published: Number) -> Iterator[Number]:
    prefix = f"{scope}.total_cost.gain.{name}"
    keys = {table: f"{prefix}.block-metadata.over_{table}" for table in _FORMS}
    known = {table: number for table, key in keys.items() if (number := numbers.get(key))}
    if not known:
        return
    parts = []
    for table, number in known.items():
        every, some = number.low >= published.value, number.high >= published.value
        verdict = "survives" if every else "survives in part" if some else "does not survive"
        parts.append(f"against a table {_FORMS[table]} it {verdict} ({number.text})")
    first = next(iter(known.values()))
    where = (first.role, first.machine, first.dataset, first.source)
    note = f"published: {published.text}; survives where every workload reaches it"
    text = ", ".join(parts)
    yield make_number(f"{prefix}.survives", where, "by rule", "text", math.nan, text=text, note=note)


# (name, id of the published number of uses by kernel)
_USES = {
    "break_even": "published.amortisation.{kernel}.break_even",
    "limit": "published.stated_limits.same-batch-repeated.repetitions",
}
_MIX = "flickr-500"


def _reuse(numbers: Numbers, scope: str) -> Iterator[Number]:
    """Yield ``<scope>.total_cost.reuse.<name>.<kernel>.<table>.over_block-metadata``: time with a table / time with
    block metadata after the published numbers of uses, on the smallest mix; at most 1 where the table has caught up."""
    for kernel in IMAGE_KERNELS:
        start = total_cost.prefix(numbers, scope, _MIX, kernel)
        ours = total_cost.cost(numbers, start, "block-metadata") if start else None
        for name, pattern in _USES.items() if ours else ():
            published = numbers[pattern.format(kernel=kernel)]
            # A limit that is printed as "100+" begins at its lower end.
            uses = published.value if math.isfinite(published.value) else published.low
            for table in total_cost.TABLES:
                cost = total_cost.cost(numbers, start, table)
                if cost is not None and math.isfinite(uses):
                    known = numbers[f"{start}.{table}.kernel.host"]
                    where = (known.role, known.machine, known.dataset, known.source)
                    key = f"{scope}.total_cost.reuse.{name}.{kernel}.{table}.over_block-metadata"
                    note = f"setup + upload + {uses:g} kernels, from medians"
                    ratio = cost.after(uses) / ours.after(uses)
                    yield make_number(key, where, known.selector, "ratio", ratio, note=note)
