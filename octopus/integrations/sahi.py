"""The slices of an image, as SAHI cuts them, as one batch by one launch.

>>> cut = slices(image, 640, 640)  # doctest: +SKIP
>>> found = model(cut.batch)  # doctest: +SKIP
"""

from importlib import import_module
from typing import Any, NamedTuple

from octopus.crop.api import crop_resize
from octopus.integrations.common import check_version

TESTED = ("0.12", "0.12")


class Slices(NamedTuple):
    """The slices of one image, and what SAHI needs to merge what is found in them.

    Attributes
    ----------
    batch : array
        (N, C, height, width) or (N, height, width, C), as `octopus.crop_resize` makes it.
    shift_amount : list of [x, y]
        Where each slice begins in the image, in pixels: `shift_amount=` of `convert_original_predictions`.
    full_shape : list of [height, width]
        Of the image, once per slice: `full_shape=` of the same.
    transform : array, (N, 4), float32, or None
        If slices were resized: from an item to the image, for `octopus.map_back`; what it leads back needs no shift.
    """

    batch: Any
    shift_amount: list[list[int]]
    full_shape: list[list[int]]
    transform: Any = None


def slices(
    image: Any, slice_height: int | None = None, slice_width: int | None = None, *, overlap_height_ratio: float = 0.2,
    overlap_width_ratio: float = 0.2, size: Any = None, **options: Any,
) -> Slices:  # fmt: skip
    """The slices that `sahi.slicing.slice_image` cuts out of an image, as one batch, in one launch.

    Parameters
    ----------
    image : array, (H, W, C), or PIL.Image.Image
        As in `octopus.crop_resize`, on the host or the GPU; SAHI reads images as red, green and blue.
    slice_height, slice_width : int, optional
        In pixels; without them SAHI chooses by the image's size.
    overlap_height_ratio, overlap_width_ratio : float
        Of the slice's sides, less than 1.
    size : (int, int) or int, optional
        Height and width in which each slice is letterboxed; by default slices stay as they are.
    **options
        Of `octopus.crop_resize`, such as `scale=255`, `dtype`, `layout`, `antialias` or `device`.

    Returns
    -------
    Slices

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `octopus.crop_resize`.
    ValueError
        SAHI's own, for an overlap of 1 or more.
    MissingPackageError
        If SAHI can't be imported, or its version is older than those tested.
    """
    check_version("sahi", TESTED)
    height, width = image.shape[:2] if hasattr(image, "shape") else image.size[::-1]
    boxes = import_module("sahi.slicing").get_slice_bboxes(
        height, width, slice_height, slice_width,
        overlap_height_ratio=overlap_height_ratio, overlap_width_ratio=overlap_width_ratio,
    )  # fmt: skip
    shifts, shapes = [box[:2] for box in boxes], [[height, width] for _ in boxes]
    if size is not None:
        batch, transform = crop_resize(image, boxes, size, letterbox=True, return_transform=True, **options)
        return Slices(batch, shifts, shapes, transform)
    x1, y1, x2, y2 = boxes[0]  # all are as large: those at the border are moved, not cut
    return Slices(crop_resize(image, boxes, (y2 - y1, x2 - x1), **options), shifts, shapes)


__all__ = ["TESTED", "Slices", "slices"]
