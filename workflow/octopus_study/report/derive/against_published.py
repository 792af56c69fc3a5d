"""Which scene the picture shows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.report import satellite
from octopus_study.report.labels_edge import SCENES
from octopus_study.report.numbers import Number, Numbers, make_number


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
