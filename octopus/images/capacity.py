"""How much a plan has room for: what its operation needs to be told, and what that comes to."""

from __future__ import annotations

from typing import Any

from octopus.errors import InputError
from octopus.images.options import Options
from octopus.images.spec import ImageSpec
from octopus.ragged.check import whole


def result_capacity(options: Options, spec: ImageSpec, images: int, pixels: Any, rows: Any) -> tuple[int, ...]:
    """Shape of the largest result of a plan.

    Raises
    ------
    InputError
        For a number that the operation needs and has not, or has and doesn't take.
    """
    wanted = {"each": "result_pixels", "rows": "" if options.most else "result_rows"}.get(spec.kind, "")
    for name, value in (("result_pixels", pixels), ("result_rows", rows)):
        if (value is None) == (name == wanted):
            verb = "needs" if name == wanted else "doesn't take"
            raise InputError(f"a plan of {options.operation} with these options {verb} {name}")
    if spec.kind == "each":
        return (whole(wanted, pixels) * spec.channels,)
    if spec.kind == "rows":
        return (images, options.most, spec.values) if options.most else (whole(wanted, rows), spec.values)
    (height, width), channels = spec.item, spec.channels
    return (images, channels, height, width) if spec.layout == "NCHW" else (images, height, width, channels)


def source_capacity(staged: bool, pixels: Any) -> int:
    """Pixels of all images of a run of a plan, where they are brought to the GPU; else 0."""
    if staged == (pixels is None):
        verb = "needs" if staged else "doesn't take"
        raise InputError(f"this plan {verb} source_pixels, which is for images on the host that a GPU works on")
    return whole("source_pixels", pixels) if staged else 0
