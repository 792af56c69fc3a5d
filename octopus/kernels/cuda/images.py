"""Images of any size in one launch, simply: one thread per output pixel. Rung 1 of the ladder, and its reference.

A block makes a tile of 8 rows and 32 columns of one image's result, and finds that image by a search among the first
tiles of all. It reads any dtype by any strides and knows every filter, rounding and order of results, in float64, so
that it can be compared with everything. No source row is shared by the output rows under whose filters it lies, and
every weight is worked out for every source row anew: a filter of `t` taps costs `t * t` weights and loads per value
where two passes need `2 * t`. What that costs: `docs/kernels.md`.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import images
from octopus.kernels.arguments import IMAGES, PADDING
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.tiles import IMAGE_COLUMNS, IMAGE_ROWS, PAD_BLOCKS
from octopus.kernels.images import COLUMNS, FIRST_TILE, HEIGHT, LEFT, PIXEL_STEP, ROW_STEP, ROWS, TOP, WIDTH, WORDS

ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it to a float64 leaves no bits for the fraction, ties go to even

_axis_scale, _nearest_pixel = device(images.axis_scale), device(images.nearest_pixel)
_window, _whole_window = device(images.window), device(images.whole_window)
_fixed_weight, _fixed_pixel = device(images.fixed_weight), device(images.fixed_pixel)


def build(
    source: str, channels: int, code: int, antialias: bool, rounding: str, dtype: str, kind: str, layout: str
) -> Callable:
    """The kernel for one kind of call; names as in `octopus.images.spec.ImageSpec`, `code` from `filter_code`.

    The grid has as many blocks of 256 threads as the last image's first tile and its tiles come to::

        blockIdx.x = first tile of the image + band * tiles across + strip
        threadIdx.x = row within the tile * IMAGE_COLUMNS + column within the tile
    """
    nearest, whole_items = code == images.NEAREST, kind == "batch"
    sample = _nearest(source, channels) if nearest else _filtered(source, channels, code, antialias, rounding)
    store, place = ptx.streaming_store(dtype, 1, saturate=True, pairs=False), _place(kind, layout, channels)
    are_rows, zero = kind == "rows", ptx.zero_of(dtype)

    def images_kernel(
        table, words, count, out, item_height, item_width, patch, merge, temporal, row_values,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3, pad0, pad1, pad2, pad3,
    ):  # fmt: skip
        gain, bias, pad = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3), (pad0, pad1, pad2, pad3)
        image = _image_of(words, count, np.int32(cuda.blockIdx.x))
        at = image * WORDS
        pointer = table[image * 8]
        rows, columns = words[at + ROWS], words[at + COLUMNS]
        height, width = (item_height, item_width) if whole_items else (rows, columns)
        across = np.int32((width + IMAGE_COLUMNS - 1) // IMAGE_COLUMNS)
        tile = np.int32(cuda.blockIdx.x - words[at + FIRST_TILE])
        band = np.int32(tile // across) if across > 0 else np.int32(0)
        y = np.int32(band * IMAGE_ROWS + cuda.threadIdx.x // IMAGE_COLUMNS)
        x = np.int32((tile - band * across) * IMAGE_COLUMNS + cuda.threadIdx.x % IMAGE_COLUMNS)
        if pointer == 0 or y >= height or x >= width:
            return
        values = cuda.local.array(channels, np.float64)
        row, column = np.int32(y + words[at + TOP]), np.int32(x + words[at + LEFT])
        inside = row >= 0 and row < rows and column >= 0 and column < columns
        if inside:
            sample(words, at, pointer, table[image * 8 + 2], row, column, values)
        sides = (height, width, patch, merge, temporal, row_values)
        first, step, copies, copy_step = place(table[image * 8 + 1], y, x, sides)
        for c in range(channels):
            value = pad[c]
            if inside:
                value = np.float32(values[c]) * gain[c] + bias[c]
            for t in range(copies):
                store(out, first + c * step + t * copy_step, (value,))
        if are_rows:  # a patch's threads share the zeros behind its row
            area = np.int64(patch) * patch
            begin = _row_of(table[image * 8 + 1], y, x, sides) * row_values
            at = channels * temporal * area + np.int64(y % patch) * patch + x % patch
            while at < row_values:
                store(out, begin + at, (zero,))
                at += area

    images_kernel.arguments = IMAGES.of(out=dtype)
    return images_kernel


@device
def _image_of(words, count, block):
    """The last image whose first tile is not behind a block: of those that begin together, the one with tiles."""
    low, high = np.int32(0), np.int32(count)
    while high - low > 1:
        middle = np.int32((low + high) >> 1)
        if words[middle * WORDS + FIRST_TILE] <= block:
            low = middle
        else:
            high = middle
    return low


@device
def _row_of(out, y, x, sides):
    """The patch row of a pixel; `out` is the image's first."""
    _, width, patch, merge, _, _ = sides
    grid_y, grid_x = y // patch, x // patch
    block = np.int64(grid_y // merge) * (width // (patch * merge)) + grid_x // merge
    return out + (block * merge + grid_y % merge) * merge + grid_x % merge


def _place(kind: str, layout: str, channels: int) -> Callable:
    """A device function: element of a pixel's first channel, step from channel to channel, copies, and their step."""
    planar = layout == "NCHW"

    @device
    def in_image(out, y, x, sides):
        height, width = sides[0], sides[1]
        pixel = np.int64(y) * width + x
        if planar:
            return out + pixel, np.int64(height) * width, 1, np.int64(0)
        return out + pixel * channels, np.int64(1), 1, np.int64(0)

    @device
    def in_rows(out, y, x, sides):
        _, _, patch, _, temporal, row_values = sides
        area = np.int64(patch) * patch
        first = _row_of(out, y, x, sides) * row_values + np.int64(y % patch) * patch + x % patch
        return first, temporal * area, temporal, area

    @device
    def in_interleaved_rows(out, y, x, sides):
        patch, row_values = sides[2], sides[5]
        pixel = np.int64(y % patch) * patch + x % patch
        return _row_of(out, y, x, sides) * row_values + pixel * channels, np.int64(1), 1, np.int64(0)

    return {"CTPP": in_rows, "PPC": in_interleaved_rows}[layout] if kind == "rows" else in_image


def _nearest(source: str, channels: int) -> Callable:
    """A device function: a pixel of the resized image is one of the source."""
    load = ptx.LOADS_AT[source]

    @device
    def sample(words, at, pointer, plane_step, row, column, values):
        y = _nearest_pixel(row, words[at + HEIGHT], words[at + ROWS])
        x = _nearest_pixel(column, words[at + WIDTH], words[at + COLUMNS])
        address = pointer + np.int64(y) * words[at + ROW_STEP] + np.int64(x) * words[at + PIXEL_STEP]
        for c in range(channels):
            values[c] = np.float64(load(address + c * plane_step))

    return sample


def _axis(code: int, antialias: bool) -> tuple[Callable, Callable]:
    """Device functions: the pixels under the filter of an output pixel with the sum of their weights, and a weight."""
    curve, whole = device(images.CURVES[code]), code == images.TORCH_BICUBIC
    reach = images.filter_support(code)

    @device
    def weight(pixel, centre, narrow):
        return curve((np.float64(pixel) - centre + 0.5) * narrow)

    @device
    def axis(index, size, count):
        scale, spread = _axis_scale(size, count, antialias)
        start, stop, centre = _window(index, scale, reach * spread, size)
        if whole:
            start, stop = _whole_window(centre, reach * spread)
        narrow, total = 1.0 / spread, 0.0
        for pixel in range(start, stop):
            total += weight(pixel, centre, narrow)
        return start, stop, centre, narrow, total

    return axis, weight


def _filtered(source: str, channels: int, code: int, antialias: bool, rounding: str) -> Callable:
    """A device function: a pixel of the resized image, in units of the source, rounded as asked."""
    load, (axis, weight) = ptx.LOADS_AT[source], _axis(code, antialias)
    fixed, rounded = rounding == "pillow", rounding == "uint8"

    @device
    def sample(words, at, pointer, plane_step, row, column, values):
        height, width = np.int64(words[at + HEIGHT]), np.int64(words[at + WIDTH])
        top, bottom, centre_y, narrow_y, total_y = axis(row, height, words[at + ROWS])
        left, right, centre_x, narrow_x, total_x = axis(column, width, words[at + COLUMNS])
        line = cuda.local.array(channels, np.float64)
        for c in range(channels):
            values[c] = 0.0
        for y in range(top, bottom):
            begin = pointer + min(max(y, np.int64(0)), height - 1) * words[at + ROW_STEP]
            for c in range(channels):
                line[c] = 0.0
            for x in range(left, right):
                address = begin + min(max(x, np.int64(0)), width - 1) * words[at + PIXEL_STEP]
                share = weight(x, centre_x, narrow_x) / total_x
                if fixed:
                    share = np.float64(_fixed_weight(share))
                for c in range(channels):
                    line[c] += share * np.float64(load(address + c * plane_step))
            share = weight(y, centre_y, narrow_y) / total_y
            if fixed:
                share = np.float64(_fixed_weight(share))
            for c in range(channels):
                if fixed:  # whole numbers below 2**53: float64 adds them exactly
                    line[c] = np.float64(_fixed_pixel(np.int32(line[c])))
                values[c] += share * line[c]
        for c in range(channels):
            if fixed:
                values[c] = np.float64(_fixed_pixel(np.int32(values[c])))
            if rounded:
                values[c] = (min(max(values[c], 0.0), 255.0) + ROUND) - ROUND

    return sample


def build_padding(dtype: str) -> Callable:
    """The kernel that fills what is left of each image's rows with 0, and writes which rows are an image's. The result
    is (N, `most`, `values`), the mask (N, `most`), int32; `area` are the pixels of a patch."""
    store, zero = ptx.streaming_store(dtype, 1, saturate=True, pairs=False), ptx.zero_of(dtype)

    def padding_kernel(table, words, most, area, values, out, mask):
        image, part = cuda.blockIdx.x // PAD_BLOCKS, cuda.blockIdx.x % PAD_BLOCKS
        if table[np.int64(image) * 8] == 0:
            return
        at = image * WORDS
        rows = np.int64(words[at + ROWS]) * words[at + COLUMNS] // area
        first = table[np.int64(image) * 8 + 1]
        thread = np.int64(part) * cuda.blockDim.x + cuda.threadIdx.x
        step = np.int64(PAD_BLOCKS) * cuda.blockDim.x
        row = thread
        while row < most:
            mask[first + row] = np.int32(1) if row < rows else np.int32(0)
            row += step
        element = rows * values + thread
        while element < np.int64(most) * values:
            store(out, first * values + element, (zero,))
            element += step

    padding_kernel.arguments = PADDING.of(out=dtype)
    return padding_kernel
