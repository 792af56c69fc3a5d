"""Sizes that images become, and where their items lie in them."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, MAX_SIDE, is_count
from octopus.arrays.memo import dynamo_disabled
from octopus.errors import InputError, shown
from octopus.images.spec import ImageSpec, item_shape
from octopus.ragged.check import integers

Columns = NDArray[np.int64]
MAX_RATIO = 200  # of an image's sides, as the rule of the Qwen2-VL family has it
MIN_PIXELS, MAX_PIXELS = 56 * 56, 28 * 28 * 1280
FEW = 8  # images, for which Python's numbers are quicker than arrays
FINEST = 1e-5  # of the scales among which SigLIP2's rule searches


class Items(NamedTuple):
    """What each image becomes, (N,) int64 or one number for all, as of `kernels.images.IMAGE`; the result's shape."""

    rows: Any
    columns: Any
    top: Any
    left: Any
    out: Columns
    shape: tuple[int, ...]


@dynamo_disabled
def smart_sizes(
    sizes: Any, factor: int = 28, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS
) -> NDArray[np.int64]:
    """The sizes at which models of the Qwen2-VL family see images: multiples of a factor, with pixels within limits.

    Each side is rounded to a multiple of `factor` (half to even, as Python's `round`). Where that makes more than
    `max_pixels`, both sides are scaled down by one ratio and rounded down, to one factor at least; where it makes less
    than `min_pixels`, scaled up and rounded up. This is `smart_resize` of transformers, for all images at once.

    Parameters
    ----------
    sizes : array, (N, 2), integer
        Heights and widths of the images in pixels, on the host.
    factor : int
        Pixels: patch times merge, 28 for Qwen2-VL and Qwen2.5-VL, 32 for Qwen3-VL.
    min_pixels, max_pixels : int
        Limits of a resized image's pixels.

    Returns
    -------
    ndarray, (N, 2), int64
        Height and width that each image becomes.

    Raises
    ------
    InputError
        For sizes that are not positive integers, a side more than 200 times as long as the other, or limits that can't
        be.

    Examples
    --------
    >>> smart_sizes([[1080, 1920], [20, 30]]).tolist()
    [[728, 1316], [56, 84]]
    """
    _check_positive(factor=factor, min_pixels=min_pixels, max_pixels=max_pixels)
    factor, min_pixels, max_pixels = int(factor), int(min_pixels), int(max_pixels)
    if min_pixels > max_pixels:
        raise InputError(f"min_pixels {min_pixels} must not be more than max_pixels {max_pixels}")
    found = checked_sizes(sizes, None)
    ratios = found.max(axis=1) / found.min(axis=1)
    if (ratios > MAX_RATIO).any():
        number = int(np.argmax(ratios > MAX_RATIO))
        height, width = found[number].tolist()
        raise InputError(
            f"image {number} of {height}x{width} has sides of a ratio of {ratios[number]:.1f}, and the rule refuses "
            f"more than {MAX_RATIO}; cut it into parts"
        )
    # In float64, by the operations of `smart_resize` in its order, so that no result differs from it.
    sides, pixels = found.astype(np.float64), found.prod(axis=1)
    made = np.rint(sides / factor).astype(np.int64) * factor
    area = made.prod(axis=1)
    over, under = area > max_pixels, area < min_pixels
    if over.any():
        ratio = np.sqrt(pixels[over] / max_pixels)[:, None]
        made[over] = np.maximum(factor, np.floor(sides[over] / ratio / factor).astype(np.int64) * factor)
    if under.any():
        ratio = np.sqrt(min_pixels / pixels[under])[:, None]
        made[under] = np.ceil(sides[under] * ratio / factor).astype(np.int64) * factor
    return made


@dynamo_disabled
def fit_sizes(sizes: Any, patch: int = 16, max_rows: int = 256) -> NDArray[np.int64]:
    """The sizes at which models of the NaViT kind see images: of as many whole patches as fit a limit.

    Both sides are scaled by one factor and rounded up to whole patches. The factor is the largest, up to 100 and to
    1e-5, at which there are at most `max_rows` patches; what rounding leaves of the aspect ratio is kept. This is
    SigLIP2's rule, `get_image_size_for_max_num_patches` of transformers, for all images at once.

    Parameters
    ----------
    sizes
        As in `smart_sizes`.
    patch : int
        Pixels of a patch's side.
    max_rows : int
        Most patches of an image, as in `patch_rows`.

    Returns
    -------
    ndarray, (N, 2), int64
        Height and width that each image becomes, multiples of `patch`.

    Raises
    ------
    InputError
        For sizes, a patch or a limit that are not positive integers.

    Examples
    --------
    >>> fit_sizes([[1080, 1920], [20, 30]]).tolist()
    [[192, 336], [208, 304]]
    """
    _check_positive(patch=patch, max_rows=max_rows)
    found = checked_sizes(sizes, None)
    if len(found) <= FEW:
        return np.array([_fit(height, width, int(patch), int(max_rows)) for height, width in found.tolist()])
    sides = found.astype(np.float64)
    least, most = np.full((2, len(found), 1), [[[FINEST / 10]], [[100.0]]])
    while (open_ := most - least >= FINEST).any():  # halved as in that function, so that no result differs from it
        middle = (least + most) / 2
        fits = np.prod(_patches(sides, middle, patch), axis=1, keepdims=True) <= max_rows
        least, most = np.where(open_ & fits, middle, least), np.where(open_ & ~fits, middle, most)
    return _patches(sides, least, patch).astype(np.int64) * int(patch)


@lru_cache(maxsize=1024)
def _fit(height: int, width: int, patch: int, most: int) -> tuple[int, int]:
    """The same for one image: NumPy takes ten times as long for so little."""

    def at(scale: float) -> tuple[int, int]:
        down, across = (max(math.ceil(side * scale / patch), 1) for side in (height, width))
        return down, across

    low, high = FINEST / 10, 100.0
    while high - low >= FINEST:
        middle = (low + high) / 2
        if math.prod(at(middle)) <= most:
            low = middle
        else:
            high = middle
    down, across = at(low)
    return down * patch, across * patch


def _patches(sides: NDArray[np.float64], scale: Any, patch: int) -> NDArray[np.float64]:
    patches: NDArray[np.float64] = np.maximum(np.ceil(sides * scale / patch), 1.0)
    return patches


def _check_positive(**numbers: Any) -> None:
    for name, value in numbers.items():
        if not is_count(value) or value < 1:
            raise InputError(f"{name} must be a positive integer, found {shown(value)}")


def checked_sizes(sizes: Any, count: int | None, factor: int = 1) -> NDArray[np.int64]:
    """Sizes (N, 2) on the host as int64, a copy; `InputError` names the first that is none, or no multiple."""
    try:
        found = np.array(integers(sizes, "sizes", 2))
    except InputError as error:
        raise InputError(
            f"{error}; sizes are a height and a width of each image, as [(224, 224)] * len(images)"
        ) from None
    if found.shape[1:] != (2,) or (count is not None and len(found) != count):
        wanted = "(N, 2)" if count is None else f"({count}, 2), a height and width for each image"
        raise InputError(f"sizes must have shape {wanted}, found {found.shape}")
    if len(found) and (np.minimum.reduce(found, None) < 1 or np.maximum.reduce(found, None) > MAX_SIDE):
        wrong = (found < 1) | (found > MAX_SIDE)
        number = int(np.argmax(wrong.any(axis=1)))
        raise InputError(
            f"sizes[{number}] = {tuple(found[number].tolist())}: sides must lie between 1 and {MAX_SIDE} pixels"
        )
    if factor > 1 and np.count_nonzero(found % factor):
        number = int(np.argmax((found % factor).any(axis=1)))
        raise InputError(
            f"sizes[{number}] = {tuple(found[number].tolist())}: with these patches sides must be multiples of "
            f"{factor} (patch * merge), as smart_sizes makes them"
        )
    return found


def items_of(spec: ImageSpec, sides: Columns, sizes: Any) -> Items:
    """What images of these sides become; `sizes` are theirs or their rule, None for a batch."""
    if spec.kind == "batch":
        if sizes is not None:
            raise InputError("resize makes items of the one size= that its plan was made with; pass no sizes")
        rows, columns, top, left = _centred(spec, sides) if spec.shortest else (*spec.item, 0, 0)
        if spec.letterbox:
            rows, columns, top, left = inner_places(*spec.item, sides)
        begins = np.arange(0, len(sides) * spec.values, spec.values)
        return Items(rows, columns, top, left, begins, (len(sides), *item_shape(spec)))
    made = checked_sizes(sizes(sides.copy()) if callable(sizes) else sizes, len(sides), spec.patch * spec.merge)
    counts = made[:, 0] * made[:, 1] * (spec.channels if spec.kind == "each" else 1) // spec.patch**2
    ends, most, row = counts.cumsum(), spec.max_rows, () if spec.kind == "each" else (spec.values,)
    begins, shape = ends - counts, (int(ends[-1]), *row)
    if most is not None:
        begins, shape = np.arange(len(counts)) * most, (len(counts), most, *row)
        if counts.max() > most:
            number = int(np.argmax(counts > most))
            raise InputError(
                f"image {number} has {counts[number]} rows, more than max_rows={most}; ask for smaller sizes, or more"
            )
    total = math.prod(shape[:-1])
    if total > INT32_MAX:
        raise InputError(f"{total:,} rows are more than an int32 counts; pass fewer images, or smaller sizes")
    return Items(made[:, 0], made[:, 1], 0, 0, begins, shape)


def vertical_first(spec: ImageSpec, sides: Columns, items: Items) -> Columns:
    """Numbers of the images whose vertical pass comes first: since Pillow 13, where more than two rows a column go."""
    if not spec.tall_first:
        return np.empty(0, np.int64)
    rows, columns = sides[:, 0] - items.rows, sides[:, 1] - items.columns
    return np.flatnonzero((rows > 0) & (rows > 2 * columns) & (columns != 0))


def inner_places(height: int, width: int, sides: Columns) -> tuple[Columns, Columns, Columns, Columns]:
    """Rows, columns, top and left of images in letterboxed items of a height and a width. The shorter side is rounded
    half to even, and of the padding the smaller half comes first, as in `crop_resize`."""
    across, down = sides[:, 1] * height, sides[:, 0] * width
    by_height = across <= down  # the height limits
    columns = np.where(by_height, np.rint(across / sides[:, 0]), width).astype(np.int64).clip(1, width)
    rows = np.where(by_height, height, np.rint(down / sides[:, 1])).astype(np.int64).clip(1, height)
    return rows, columns, -((height - rows) >> 1), -((width - columns) >> 1)


def _centred(spec: ImageSpec, sides: Columns) -> tuple[Columns, Columns, Columns, Columns]:
    """The same for the middle of images whose shorter side becomes `shortest`, as transformers' processors cut it. The
    longer side is truncated to an integer, and so is the offset of the item (torchvision's `CenterCrop` rounds it)."""
    longest = (spec.shortest * sides.max(axis=1) / sides.min(axis=1)).astype(np.int64)
    if longest.max() > MAX_SIDE:
        number = int(np.argmax(longest))
        raise InputError(f"image {number} would be {longest[number]} pixels long; cut it into parts")
    upright = sides[:, 0] <= sides[:, 1]
    rows, columns = np.where(upright, spec.shortest, longest), np.where(upright, longest, spec.shortest)
    top, left = (((inner - side) / 2).astype(np.int64) for inner, side in zip((rows, columns), spec.item, strict=True))
    return rows, columns, top, left


def way_back(sides: Columns, items: Items) -> NDArray[np.float32]:
    """`scale_x, scale_y, shift_x, shift_y` from each item to its image, (N, 4), as `octopus.map_back` takes them."""
    scale_x, scale_y = sides[:, 1] / items.columns, sides[:, 0] / items.rows
    return np.column_stack([scale_x, scale_y, items.left * scale_x, items.top * scale_y]).astype(np.float32)


def shapes_of(spec: ImageSpec, items: Items) -> Columns | None:
    """Shapes of items of their own sizes, (N, 3); of rows 1 (the frame), patches down and across; None of a batch."""
    if spec.kind == "batch":
        return None
    number, patch = (spec.channels, 1) if spec.kind == "each" else (1, spec.patch)
    shapes, first = np.empty((len(items.out), 3), np.int64), spec.layout != "NHWC"
    shapes[:, 0 if first else 2] = number
    np.floor_divide(items.rows, patch, out=shapes[:, int(first)])
    np.floor_divide(items.columns, patch, out=shapes[:, int(first) + 1])
    return shapes
