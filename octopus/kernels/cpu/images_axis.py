"""Weights of one axis of an image: which source pixels each output pixel is made of."""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels import images
from octopus.kernels.cpu import compiled, shifted
from octopus.kernels.cpu.vectors import LANES

NEAREST, TORCH_BICUBIC = images.NEAREST, images.TORCH_BICUBIC
filter_support = compiled(images.filter_support)
axis_scale = compiled(images.axis_scale)
window_taps = compiled(images.window_taps)
_window = compiled(images.window)
_whole_window = compiled(images.whole_window)
bilinear, bicubic = compiled(images.bilinear), compiled(images.bicubic)
torch_bicubic, lanczos = compiled(images.torch_bicubic), compiled(images.lanczos)
_fixed_weight, _short_weight = compiled(images.fixed_weight), compiled(images.short_weight)
_short_bits = compiled(images.short_bits)


def _tap_of(weight: Callable) -> Callable:
    @compiled
    def weigh_tap(k, narrower, count, starts, centres, line):
        """Weights of pixel `k` of each of `count` windows, see `images.CURVES`."""
        for i in range(count):
            line[i] = weight((np.float64(starts[i] + k) - centres[i] + 0.5) * narrower)

    return weigh_tap


_weigh_tap_bilinear, _weigh_tap_bicubic, _weigh_tap_lanczos = map(_tap_of, (bilinear, bicubic, lanczos))


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
def _weigh(code, first, count, axis, size, starts, sizes, into):
    """Windows and weights of `count` output pixels, tap by tap: loops over pixels are what becomes vectors. `into` gets
    the pixels' centres, the sums of their weights, and a line of weights, not yet divided by these, for each tap;
    float64."""
    scale, spread = axis
    support, most = filter_support(code) * spread, np.int64(0)
    centres, totals = into, shifted(into, count)
    for i in range(count):
        start, stop, centres[i] = _window(first + i, scale, support, size)
        starts[i], sizes[i], totals[i] = start, stop - start, 0.0
        most = max(most, stop - start)
    for k in range(most):
        line = shifted(into, (k + 2) * count)
        if code == images.BILINEAR:
            _weigh_tap_bilinear(k, 1.0 / spread, count, starts, centres, line)
        elif code == images.BICUBIC:
            _weigh_tap_bicubic(k, 1.0 / spread, count, starts, centres, line)
        else:
            _weigh_tap_lanczos(k, 1.0 / spread, count, starts, centres, line)
        for i in range(count):
            line[i] = line[i] if k < sizes[i] else 0.0
            totals[i] += line[i]
    return most


@compiled
def _weigh_border(index, axis, size, starts, sizes, into):
    """As `_weigh`, of one pixel of torch's bicubic: what lies beyond the border counts for the border's pixel."""
    scale, spread = axis
    support = filter_support(TORCH_BICUBIC) * spread
    start, stop, centre = _window(index, scale, support, size)
    low, high = _whole_window(centre, support)
    starts[0], sizes[0], total, weights = start, stop - start, 0.0, shifted(into, 2)
    for k in range(stop - start):
        weights[k] = 0.0
    for pixel in range(low, high):
        weight = torch_bicubic((np.float64(pixel) - centre + 0.5) * (1.0 / spread))
        weights[min(max(pixel, start), stop - 1) - start] += weight
        total += weight
    into[1] = total
    return stop - start


@compiled
def counted_from(table, count, origin, _):
    """Count an axis's windows from pixel `origin`."""
    for i in range(count):
        table[0][i] -= origin


@compiled
def pair_up(table, count, origin, spare):
    """Turn an axis's table of weights into one of pairs of weights, of pixels counted from `origin` in pairs. For each
    pair of pixels there are two int32, of the low and of the high 16 bits of both weights; one is 0 where the window
    begins or ends within a pair. The table's weights, and `spare`, need two more elements than taps."""
    starts, sizes, weights, pitch, _ = table
    for i in range(count):
        own, odd, size = shifted(weights, i * pitch), (starts[i] - origin) & 1, sizes[i]
        spare[0], spare[odd + size] = 0, 0
        for k in range(size):
            spare[odd + k] = own[k]
        pairs = (odd + size + 1) // 2
        for pair in range(pairs):
            one, other = spare[2 * pair], spare[2 * pair + 1]
            own[2 * pair] = (one & 0xFFFF) | (other << 16)
            own[2 * pair + 1] = (((one + 0x8000) >> 16) & 0xFFFF) | (((other + 0x8000) >> 16) << 16)
        starts[i], sizes[i] = (starts[i] - origin) // 2, pairs


@compiled
def used_rows(starts, sizes, count, step, lanes, places):
    """Places of the source rows that an axis uses, the last repeated to whole `lanes`; `starts` count these then."""
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


@compiled
def _bits_of_axis(size, count, code, antialias, lot, table):
    """`images.short_bits` of all output pixels of an axis, `lot` at a time; what the table holds is lost."""
    starts, sizes, _, _, scratch = table
    axis, most = axis_scale(size, count, antialias), np.float64(0.0)
    first = np.int64(0)
    while first < count:  # a range by a step that isn't known may raise an error
        n = min(lot, count - first)
        taps = _weigh(code, first, n, axis, size, starts, sizes, scratch)
        totals = shifted(scratch, n)
        for k in range(taps):
            line = shifted(scratch, (k + 2) * n)
            for i in range(n):
                most = max(most, line[i] / totals[i])
        first += lot
    return _short_bits(most)


@cache
def weights_of(rounding: str) -> Callable:
    """A function that fills the table of output pixels `first` to `stop` of an axis. The table is `starts, sizes`
    (int64), `weights` (`taps` for each output pixel; float32, or int32 in the fixed point of `rounding` "pillow" and
    "torch"), and memory for `taps + 2` times 16 float64."""
    short = rounding == "torch"

    @compiled
    def _stored(weight, bits):
        if short:
            return _short_weight(weight, bits)
        return _fixed_weight(weight) if rounding == "pillow" else np.float32(weight)

    @compiled
    def weigh(size, count, code, antialias, first, stop, table):
        starts, sizes, weights, taps, scratch = table
        if code == NEAREST or size == count:
            _copied(size, count, code, first, stop, starts, sizes)
            for i in range(stop - first):
                weights[i * taps] = _stored(1.0, 0)
            return
        axis, lot = axis_scale(size, count, antialias), 1 if code == TORCH_BICUBIC else LANES
        bits = np.int64(0)
        if short and stop > first:
            bits = _bits_of_axis(size, count, code, antialias, min(LANES, stop - first), table)
        low = np.int64(0)
        while low < stop - first:
            own, n = shifted(weights, low * taps), min(lot, stop - first - low)
            if code == TORCH_BICUBIC:
                most = _weigh_border(first + low, axis, size, shifted(starts, low), shifted(sizes, low), scratch)
            else:
                most = _weigh(code, first + low, n, axis, size, shifted(starts, low), shifted(sizes, low), scratch)
            totals = shifted(scratch, n)
            for k in range(most):
                line = shifted(scratch, (k + 2) * n)
                for i in range(n):
                    own[i * taps + k] = _stored(line[i] / totals[i], bits)
            low += lot

    return weigh
