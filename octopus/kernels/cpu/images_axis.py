"""Weights of one axis of an image: which source pixels each output pixel is made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels import images
from octopus.kernels.cpu import compiled, shifted

NEAREST, TORCH_BICUBIC = images.NEAREST, images.TORCH_BICUBIC
filter_support = compiled(images.filter_support)
axis_scale = compiled(images.axis_scale)
window_taps = compiled(images.window_taps)
_window = compiled(images.window)
_whole_window = compiled(images.whole_window)
bilinear, bicubic = compiled(images.bilinear), compiled(images.bicubic)
torch_bicubic, lanczos = compiled(images.torch_bicubic), compiled(images.lanczos)
_fixed_weight = compiled(images.fixed_weight)


@compiled
def _filter_weight(code, pixel, centre, spread):
    x = (np.float64(pixel) - centre + 0.5) * (1.0 / spread)
    if code == images.BILINEAR:
        return bilinear(x)
    if code == images.BICUBIC:
        return bicubic(x)
    return lanczos(x) if code == images.LANCZOS else torch_bicubic(x)


@compiled
def most_taps(size, count, code, antialias):
    """Source pixels under the filter of an output pixel along an axis, at most."""
    return min(window_taps(filter_support(code) * axis_scale(size, count, antialias)[1]), np.int64(size))


@compiled
def _copied(size, count, code, first, stop, starts, sizes):
    """One pixel each: the filter nearest, and an axis whose size stays."""
    scale = np.float64(size) / np.float64(count)
    position = scale * 0.5
    for _ in range(first):  # as Pillow does, see `images.nearest_pixel`
        position += scale
    for i in range(stop - first):
        starts[i] = min(np.int64(position), size - 1) if code == NEAREST else first + i
        sizes[i] = 1
        position += scale


@compiled
def _weigh(code, index, scale, spread, size, into):
    """Window and weights, not yet divided by their sum, of one output pixel; `into` is float64."""
    support = filter_support(code) * spread
    start, stop, centre = _window(index, scale, support, size)
    total = 0.0
    if code == TORCH_BICUBIC:
        for k in range(stop - start):
            into[k] = 0.0
        low, high = _whole_window(centre, support)
        for pixel in range(low, high):
            weight = _filter_weight(code, pixel, centre, spread)
            into[min(max(pixel, start), stop - 1) - start] += weight
            total += weight
        return start, stop - start, total
    for k in range(stop - start):
        into[k] = _filter_weight(code, start + k, centre, spread)
    for k in range(stop - start):
        total += into[k]
    return start, stop - start, total


@compiled
def counted_from(table, count, origin, _):
    """Count an axis's windows from pixel `origin`."""
    for i in range(count):
        table[0][i] -= origin


@compiled
def used_rows(starts, sizes, count, step, lanes, places):
    """Which source rows a vertical axis uses, as bytes from the first row of all; `starts` then count these alone.

    Without antialias, reducing leaves rows out. The last one is repeated to a multiple of `lanes`.
    """
    used, last = np.int64(0), np.int64(-1)
    for i in range(count):
        first, stop = starts[i], starts[i] + sizes[i]
        for row in range(max(first, last + 1), stop):
            places[used] = row * step
            used += 1
            last = row
        starts[i] = used - (last + 1 - first)
    for i in range(used, (used + lanes - 1) // lanes * lanes):
        places[i] = last * step


def weights_of(fixed: bool) -> Callable:
    """A function that fills the table of output pixels `first` to `stop` of an axis.

    The table is `starts, sizes` (int64), `weights` (`taps` for each output pixel; float32, or int32 in Pillow's fixed
    point), and memory for `taps` float64.
    """

    @compiled
    def _stored(weight):
        return _fixed_weight(weight) if fixed else np.float32(weight)

    @compiled
    def weigh(size, count, code, antialias, first, stop, table):
        starts, sizes, weights, taps, scratch = table
        if code == NEAREST or size == count:
            _copied(size, count, code, first, stop, starts, sizes)
            for i in range(stop - first):
                weights[i * taps] = _stored(1.0)
            return
        scale, spread = axis_scale(size, count, antialias)
        for i in range(stop - first):
            starts[i], sizes[i], total = _weigh(code, first + i, scale, spread, size, scratch)
            own = shifted(weights, i * taps)
            for k in range(sizes[i]):
                own[k] = _stored(scratch[k] / total)

    return weigh
