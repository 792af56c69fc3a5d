"""`keep_tiles` and `TilePlan` on a GPU: the CPU's very bits, interchange, graphs, streams, and nothing hidden."""

from itertools import product

import numpy as np
import pytest
from cases.tiles import tiles_of
from gpu import host, sanitize, slow_stream, synchronize

from octopus import InputError, TilePlan, best_within, keep_tiles, otsu_threshold, tile_means
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current
from octopus.backends.cuda.memory import DeviceArray

pytestmark = pytest.mark.gpu


def some_image(shape, dtype, seed=1):
    top = np.iinfo(dtype).max
    return np.random.default_rng(seed).integers(0, top, shape, dtype, endpoint=True)


def assert_same(found, expected):
    for left, right in zip(found, expected, strict=True):
        assert np.array_equal(host(left), right, equal_nan=right.dtype.kind == "f")


@pytest.mark.parametrize("count", [1, 2, 70_000])
def test_one_large_tile_among_small_ones(count):
    image = some_image((2048, 2048), np.uint16)
    small = np.arange(count) % 2000
    tiles = np.vstack([[0, 0, 2048, 2048], np.column_stack([small, small, small + 1, small + 2])])
    expected = tile_means(image, tiles, device="cpu")
    on_gpu = memory.upload(image)
    assert np.array_equal(host(tile_means(on_gpu, tiles)), expected)
    assert np.array_equal(host(tile_means(on_gpu, memory.upload(tiles))), expected)


def test_what_surrounds_the_image_is_neither_counted_nor_written():
    for dtype, lead in product((np.uint8, np.uint16), range(0, 17)):
        item = np.dtype(dtype).itemsize
        block = memory.upload(np.full(16384, 0xFF, np.uint8))
        image = some_image((37, 53), dtype, lead)
        start = 64 + lead * item
        memory.copy(block.pointer + start, image.ctypes.data, image.nbytes)
        part = DeviceArray(image.shape, dtype, buffer=block, pointer=block.pointer + start)
        tiles = tiles_of(53, 37, 30)
        assert np.array_equal(host(tile_means(part, tiles)), tile_means(image, tiles, device="cpu"))
        after = block.copy_to_host()
        assert (after[:start] == 0xFF).all() and (after[start + image.nbytes :] == 0xFF).all()


def test_no_tiles_and_a_plan_on_the_gpu():
    image = memory.upload(np.zeros((4, 5), np.uint8))
    flags, means = keep_tiles(image, np.empty((0, 4), int), 0.5)
    assert (flags.shape, means.shape) == ((0,), (0,))
    with pytest.raises(InputError, match="the plan is for images"):
        TilePlan(image, [[0, 0, 1, 1]]).run(memory.upload(np.zeros((5, 5), np.uint8)))
    with pytest.raises(InputError, match="tiles are on the GPU"):
        keep_tiles(np.zeros((4, 5), np.uint8), memory.upload(np.array([[0, 0, 1, 1]])), 0.5)
    with pytest.raises(InputError, match="image is on the GPU"):
        keep_tiles(image, [[0, 0, 1, 1]], 0.5, device="cpu")


def test_the_rules_take_means_on_the_gpu():
    means = np.random.default_rng(4).random(50)
    on_gpu = memory.upload(means)
    assert otsu_threshold(on_gpu) == otsu_threshold(means)
    assert np.array_equal(best_within(on_gpu, np.ones(50), 9), best_within(means, np.ones(50), 9))


def test_runs_follow_each_other_on_different_streams():
    first, second = some_image((300, 400), np.uint16, 1), some_image((300, 400), np.uint16, 2)
    tiles = tiles_of(400, 300, 200)
    left, right = memory.upload(first), memory.upload(second)
    plan = TilePlan(left, tiles)
    plan.run(left)
    synchronize()
    slow, quick = slow_stream(), current().create_stream()
    plan.run(left, stream=slow)
    means = plan.run(right, stream=quick)[1]
    synchronize()
    assert np.array_equal(means.copy_to_host(), tile_means(second, tiles, device="cpu"))


def test_torch_tensors_stay_torch_and_a_plan_runs_in_a_graph():
    torch = pytest.importorskip("torch")
    pixels = some_image((300, 401, 3), np.uint8)
    tiles = tiles_of(401, 300, 200)
    image = torch.from_numpy(pixels).cuda()
    expected = keep_tiles(pixels, tiles, 0.5, device="cpu")
    flags, means = keep_tiles(image, torch.from_numpy(tiles).cuda(), 0.5)
    assert (flags.dtype, means.dtype, flags.device) == (torch.bool, torch.float64, image.device)
    assert_same((flags, means), expected)
    part, tile = (slice(3, 200), slice(5, 300)), [[0, 0, 295, 197]]
    assert_same(keep_tiles(image[part], tile, 0.5), keep_tiles(pixels[part], tile, 0.5, device="cpu"))
    plan = TilePlan(image, tiles)
    plan.run(image, 0.5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        flags, means = plan.run(image, 0.5)
    image.fill_(255)
    graph.replay()
    torch.cuda.synchronize()
    assert flags.all() and (means == 1).all()


SANITIZED = """
import numpy as np
from octopus import keep_tiles
from octopus.backends.cuda import memory
for shape, dtype in (((37, 53), "uint8"), ((9, 1001), "uint16"), ((5, 7, 3), "uint8")):
    image = memory.upload(np.full(shape, 9, dtype))
    h, w = shape[:2]
    tiles = np.array([(0, 0, w, h), (1, 1, w, h), (0, 0, 1, 1), (w - 1, h - 1, w, h), (-9, -9, 99999, 99)])
    for boxes in (tiles[:4], memory.upload(tiles)):
        for nodata in (None, 3):
            means = keep_tiles(image, boxes, 0.5, scale=9, nodata=nodata)[1].copy_to_host()
            assert (means == 1).all(), means
"""


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
def test_the_sanitizer_finds_nothing(tool, tmp_path):
    sanitize(tool, SANITIZED, tmp_path)
