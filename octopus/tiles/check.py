"""What the means of tiles are asked for, checked before any work: image, tiles, scale, threshold, value for no data."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, MAX_SIDE, channels_first, check_dense, check_readable, is_count, of_dtype
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.errors import InputError, shown

IMAGE_DTYPES = ("uint8", "uint16")
GPU_TILE_DTYPES = ("int32", "int64")
MAX_VALUES = 1 << 32  # the sum of so many uint16 fits into 48 bits
MAX_PITCH = 1 << 30  # bytes from row to row, of which the kernels count in 32 bits


@dataclass(frozen=True)
class ImageSpec:
    """An image's form, whatever its values; `pitch` are bytes from row to row."""

    height: int
    width: int
    channels: int
    pitch: int
    dtype: str

    @property
    def pixel(self) -> int:
        return self.channels * np.dtype(self.dtype).itemsize

    @property
    def extent(self) -> int:
        """Bytes from the first pixel to the end of the last."""
        return (self.height - 1) * self.pitch + self.width * self.pixel

    @property
    def values(self) -> int:
        """Of all channels."""
        return self.height * self.width * self.channels


def image_view(image: Any) -> ArrayView:
    check_dense(image, "image")
    return view(image, "image")


def image_spec(image: ArrayView) -> ImageSpec:
    """The form of an image (H, W) or (H, W, C) of uint8 or uint16 whose rows have no gaps."""
    if len(image.shape) not in (2, 3):
        raise InputError(f"image must have shape (H, W) or (H, W, C), found {image.shape}")
    if len(image.shape) == 3 and channels_first(image.shape):
        raise InputError(
            f"the channels of an image come last, found them first in shape {image.shape}; pass a contiguous copy of "
            f"image.{'permute' if image.family == 'torch' else 'transpose'}(1, 2, 0)"
        )
    if not of_dtype(image, IMAGE_DTYPES):
        raise InputError(f"image must be uint8 or uint16 in the machine's byte order, found {image.dtype}")
    height, width, channels = (*image.shape, 1)[:3]
    if 0 in image.shape or max(image.shape) > MAX_SIDE:
        raise InputError(f"image sides must lie between 1 and {MAX_SIDE}, found {image.shape}")
    item = image.dtype.itemsize
    pitch = image.strides[0] if height > 1 else width * channels * item
    along = image.strides[1] if width > 1 else channels * item
    packed = along == channels * item and (channels == 1 or image.strides[2] == item)
    if not packed or pitch < width * channels * item or pitch % item or image.pointer % item:
        raise InputError(
            f"the pixels of an image row must lie next to each other, found strides {image.strides} bytes; make a "
            "contiguous copy first (numpy.ascontiguousarray, tensor.contiguous)"
        )
    spec = ImageSpec(height, width, channels, pitch, dtype_name(image.dtype))
    if pitch > MAX_PITCH or spec.values > MAX_VALUES:
        raise InputError(
            f"an image of {spec.values:,} values with rows {pitch:,} bytes apart is too large (up to {MAX_VALUES:,} "
            f"and {MAX_PITCH:,}); pass contiguous parts of it, one call for each"
        )
    return spec


def check_tile_form(tiles: ArrayView) -> None:
    if len(tiles.shape) != 2 or tiles.shape[1] != 4:
        raise InputError(f"tiles must have shape (N, 4), found {tiles.shape}; no tiles are numpy.empty((0, 4), int)")
    if tiles.dtype.kind not in "iu":
        raise InputError(f"tiles cover whole pixels and must be integers, found {tiles.dtype}; round them first")
    if tiles.shape[0] > INT32_MAX:
        raise InputError(f"{tiles.shape[0]} tiles are more than one launch can address; split the batch")
    if tiles.device == "cuda":
        check_readable(tiles, "tiles", GPU_TILE_DTYPES)


def host_tiles(tiles: NDArray[Any], spec: ImageSpec) -> NDArray[np.int32]:
    """Tiles on the host as int32, a copy, none of them empty or beyond the image."""
    tiles = tiles.copy()  # the caller can't change it while it is checked
    x1, y1, x2, y2 = tiles.T
    good = (x1 >= 0) & (y1 >= 0) & (x2 <= spec.width) & (y2 <= spec.height) & (x1 < x2) & (y1 < y2)
    if not good.all():
        first = int(np.argmin(good))
        left, top, right, bottom = tiles[first].tolist()
        why = f"reaches outside the image of {spec.width}x{spec.height} pixels; clip it first"
        if left >= right or top >= bottom:
            why = "is empty (x1 < x2 and y1 < y2 are required)"
        raise InputError(
            f"tile {first} = ({left}, {top}, {right}, {bottom}) {why}; wrong tiles: {int((~good).sum())} of {len(good)}"
        )
    return tiles.astype(np.int32, order="C")


def checked_scale(scale: Any, dtype: str) -> float:
    if scale is None:
        return float(np.iinfo(dtype).max)
    found = number("scale", scale)
    if not (math.isfinite(found) and found > 0):
        raise InputError(f"scale must be positive and finite, found {shown(scale)}")
    return found


def checked_nodata(nodata: Any, dtype: str) -> int | None:
    found = _bare(nodata)
    if found is None:
        return None
    if not is_count(found) or not 0 <= found <= np.iinfo(dtype).max:
        raise InputError(f"nodata must be None or a value of {dtype}, found {shown(nodata)}")
    return int(found)


def number(name: str, value: Any) -> float:
    """A number of Python or NumPy, or an array of any library without dimensions, one on a GPU is waited for."""
    found = _bare(value)
    if isinstance(found, (int, float, np.integer, np.floating)) and not isinstance(found, bool):
        try:
            return float(found)
        except OverflowError:
            raise InputError(f"{name} leaves the range of float64") from None
    raise InputError(f"{name} must be a number, found {shown(value)}")


def _bare(value: Any) -> Any:
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
