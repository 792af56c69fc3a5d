"""The scalar arithmetic that the kernels of images share, called as plain functions."""

import numpy as np
import pytest

from octopus.kernels import images
from octopus_study.reference import images as images_reference


def test_a_record_has_64_bytes_and_no_gaps():
    assert images.IMAGE.itemsize == 64
    assert sum(images.IMAGE[name].itemsize for name in images.IMAGE.names) == 64


@pytest.mark.parametrize(("size", "count"), [(10, 3), (70, 21), (7, 7), (1, 5), (5, 1), (6, 4), (330, 99), (1000, 7)])
def test_nearest_pixel_is_pillows_running_sum(size, count):
    expected = images_reference.weights(size, count, "nearest", True).argmax(axis=1)
    assert [images.nearest_pixel(i, size, count) for i in range(count)] == expected.tolist()


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("size", "count"), [(10, 3), (3, 10), (7, 7), (1, 5), (50, 1)])
def test_windows_and_weights(filter, antialias, size, count):
    code = images.filter_code(filter, antialias)
    scale, spread = images.axis_scale(size, count, antialias)
    support = images.filter_support(code) * spread
    for index, expected in enumerate(images_reference.weights(size, count, filter, antialias)):
        start, stop, centre = images.window(index, scale, support, size)
        assert 0 <= start < stop <= size
        assert stop - start <= images.window_taps(support)
        low, high = images.whole_window(centre, support) if code == images.TORCH_BICUBIC else (start, stop)
        row = np.zeros(size)
        for pixel in range(low, high):
            row[min(max(pixel, 0), size - 1)] += images.CURVES[code]((pixel - centre + 0.5) / spread)
        assert np.allclose(row / row.sum(), expected, rtol=0, atol=1e-14)


def test_fixed_point():
    weights = [-0.1, 0.0, 1.0, 2.0**-23, -(2.0**-23), 0.25]
    assert [int(images.fixed_weight(weight)) for weight in weights] == [-419430, 0, 1 << 22, 1, -1, 1 << 20]
    totals = np.array([-(1 << 30), -(1 << 21) - 1, (1 << 21) - 1, 1 << 21, 255 << 22, 1 << 30], np.int32)
    assert [int(images.fixed_pixel(total)) for total in totals] == [0, 0, 0, 1, 255, 255]


def test_bfloat16_rounds_half_to_even():
    values = np.array([1.0, 1.00390625, 1.01171875, -3.3e38, np.inf, -0.0, 3.4e38], np.float32)
    bits = [int(images.bfloat16_bits(value)) for value in values]
    assert bits == [0x3F80, 0x3F80, 0x3F82, 0xFF78, 0x7F80, 0x8000, 0x7F80]
    assert bits[:4] == images_reference.cast(values[:4], "bfloat16").tolist()
    assert images.bfloat16_bits(np.float32(np.nan)) & 0x7FFF > 0x7F80
