"""Slices of supervision's `InferenceSlicer` as one batch by one launch.

>>> slicer = InferenceSlicer(batched(find, 640, scale=255), slice_wh=640, batch_size=64)  # doctest: +SKIP

Its `Detections` need nothing: `octopus.crop_resize` takes them as boxes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from octopus import images, map_back
from octopus.errors import InputError
from octopus.integrations.common import check_version

TESTED = ("0.30", "0.31")

ORIENTED = "xyxyxyxy"  # supervision.config.ORIENTED_BOX_COORDINATES
UNCHANGED = (1.0, 1.0, 0.0, 0.0)


def batched(infer: Callable[[Any], list[Any]], size: Any, **options: Any) -> Callable[[list[Any]], list[Any]]:
    """A callback for `InferenceSlicer(callback, batch_size=...)` whose model takes a batch.

    The slicer gives the callback up to `batch_size` slices, which may be smaller where the image ends. They are
    letterboxed into one batch by one launch, and the boxes that the model found are led back to their slices.

    Parameters
    ----------
    infer : callable
        Takes the batch, as `octopus.images.resize` makes it of arrays of NumPy: (N, C, height, width), by default
        float32. Returns as many `supervision.Detections`, their boxes in pixels of the items.
    size : (int, int) or int
        Height and width of the items.
    **options
        Of `octopus.images.resize`, such as `scale=255`, `channels="BGR"`, `antialias=False` or `device`; not `out`,
        since the number of slices varies.

    Returns
    -------
    callable
        Takes a list of slices and returns a list of `Detections`.

    Raises
    ------
    InputError
        For `out`. When called: as `octopus.images.resize`; or for detections with masks or oriented boxes, which aren't
        led back, in a slice that was resized or padded.
    MissingPackageError
        If supervision can't be imported, or its version is older than those tested.
    """
    check_version("supervision", TESTED)
    if options.get("out") is not None:
        raise InputError("out can't be given to a slicer, whose number of slices varies; leave it out")

    def callback(slices: list[Any]) -> list[Any]:
        batch, transform = images.resize(slices, size, letterbox=True, return_transform=True, **options)
        ways = transform.copy_to_host(stream=options.get("stream")) if hasattr(transform, "copy_to_host") else transform
        found = infer(batch)
        if isinstance(found, list) and len(found) == len(slices):  # else the slicer says what is wrong
            for one, way in zip(found, ways, strict=True):
                _lead_back(one, way)
        return found

    return callback


def _lead_back(detections: Any, way: Any) -> None:
    if len(detections) == 0 or np.array_equal(way, UNCHANGED):
        return
    if detections.mask is not None or ORIENTED in detections.data:
        raise InputError(
            "masks and oriented boxes are not led back from items to slices; pass the slices' size as size, with an "
            "overlap, so that none is resized, or leave them out in infer"
        )
    detections.xyxy = map_back(detections.xyxy[None], way[None])[0]


__all__ = ["TESTED", "batched"]
