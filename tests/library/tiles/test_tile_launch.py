"""What a `TilePlan` hands to the driver, without a GPU: host memory stands for its memory, NumPy for the kernel."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from pretended_driver import QUEUE, Memory, at, in_host_memory, there

from octopus import TilePlan, keep_tiles
from octopus.backends.cuda import compile, memory
from octopus.errors import OutOfMemoryError
from octopus.kernels.cuda.tile_grid import Grid
from octopus.tiles import cuda


def tiles_of(work, blocks):
    """How many tiles a table of blocks is for, after a look at it."""
    table = at(work, (blocks, 4), np.int32)
    count = int(table[:, 0].max()) + 1
    parts = dict(table[:, ::2].tolist())
    named = [(tile, number) for tile in parts for number in range(parts[tile])]
    assert sorted(map(tuple, table[:, :2].tolist())) == sorted(named)
    return count


def launched(made):
    """Do what the kernel would."""
    assert made.count == len(made.values) and made.stream == QUEUE.handle
    source, head, end, pitch, width, height, pixel, *rest = made.values
    tiles, work, _, words, absent, nodata, scale, level, means, flags = rest
    _, dtype, tile_dtype, *options = made.kernel.name.split("-")
    item = np.dtype(dtype).itemsize
    count = tiles_of(work, made.grid[0]) if work else made.grid[0]
    assert source % 16 == 0 and 0 <= head < 16 and end == head + (height - 1) * pitch + width * pixel
    assert ("aligned" in options) == (pitch % 16 == 0) and ("listed" in options) == (work != 0)
    assert absent - words >= 8 * count if "nodata" in options else True
    image = at(source + head, (height, width * pixel // item), dtype, (pitch, item))
    channels = pixel // item
    for tile, (x1, y1, x2, y2) in enumerate(at(tiles, (count, 4), tile_dtype).tolist()):
        assert at(words, (count,), np.int64)[tile] == 0
        values = image[y1:y2, x1 * channels : x2 * channels]
        values = values[values != nodata] if "nodata" in options else values
        mean = values.mean() / scale
        at(means, (count,), np.float64)[tile] = mean
        at(flags, (count,), np.uint8)[tile] = mean > level


@pytest.fixture
def driver(monkeypatch):
    """Of CUDA, which does what it is asked to launch."""

    def load(name, build):
        function, signature = build()
        assert function.__code__.co_argcount == len(signature)
        return SimpleNamespace(name=name, signature=signature)

    made = in_host_memory(monkeypatch, cuda, launched)
    monkeypatch.setattr(compile, "load", load)
    cuda._kernel.cache_clear()
    yield made
    cuda._kernel.cache_clear()
    assert not made.errors


TILES = np.array([[0, 0, 40, 30], [39, 29, 40, 30], [3, 0, 4, 30], [0, 8, 40, 9]])


def image_of(dtype, channels, wide):
    pixels = np.random.default_rng(1).integers(0, 200, (30, 40 + 7 * wide, channels), dtype)
    return pixels[:, 3:43] if wide else pixels


@pytest.mark.parametrize("nodata", [None, 5])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("dtype", "channels"), [("uint8", 1), ("uint8", 3), ("uint16", 1), ("uint16", 4)])
def test_images_from_the_host_and_on_the_gpu(driver, dtype, channels, wide, nodata):
    image = image_of(dtype, channels, wide)
    options = {"scale": 3.0, "nodata": nodata}
    expected = keep_tiles(image, TILES, 33.3, device="cpu", **options)
    found = keep_tiles(image, TILES, 33.3, **options)
    results = keep_tiles(there(image), TILES, 33.3, **options)
    for left, right, other in zip(expected, found, results, strict=True):
        assert np.array_equal(left, right) and np.array_equal(left, other.array)
    from_host, on_gpu = driver.launches
    assert (from_host.grid, from_host.block) == (on_gpu.grid, on_gpu.block)


def test_tiles_on_the_gpu_are_read_where_they_are(driver):
    image, tiles = image_of("uint8", 1, False), TILES.astype(np.int64)
    plan = TilePlan(there(image), there(tiles))
    first = plan.run(there(image))[1].array.copy()
    tiles[0] = 0, 0, 1, 1
    assert plan.run(there(image))[1].array[0] == image[0, 0, 0] / 255 != first[0]


def test_runs_that_differ_in_addresses_or_numbers_alone(driver, monkeypatch):
    """Also in how far an image lies behind a multiple of 16 bytes; no more launches are kept than there is room for."""
    monkeypatch.setattr(cuda, "MOST_LAUNCHES", 3)
    plan, block = TilePlan(there(image_of("uint8", 1, False)), TILES), np.zeros(1300, np.uint8)
    for shift, threshold in [(0, 0.3), (16, 0.3), (5, 0.3), (5, 0.4), (6, 0.4), (7, 0.4), (0, 0.3)]:
        image = block[shift : shift + 1200].reshape(30, 40, 1)
        image[...] = np.random.default_rng(shift).integers(0, 200, image.shape)
        found, expected = plan.run(there(image), threshold), keep_tiles(image, TILES, threshold, device="cpu")
        assert all(np.array_equal(one.array, other) for one, other in zip(found, expected, strict=True))
        assert len(plan.engine._launches) <= 3


def test_the_word_of_the_driver_for_a_launch_that_it_refuses(driver):
    driver.statuses["launch"] = 701
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        keep_tiles(there(image_of("uint8", 1, False)), TILES, 0.5)


def test_a_launch_per_tile_gives_the_same(driver):
    image = image_of("uint16", 1, True)
    plan = TilePlan(image, TILES, nodata=9)
    means, flags = Memory((4,), np.float64), Memory((4,), np.uint8)
    for tile in range(4):
        plan.engine.launch_part(
            plan.spec, image.ctypes.data, 65535.0, 0.0015, means.pointer, flags.pointer, QUEUE,
            grid=Grid((1, 3), 4, None), first=tile,
        )  # fmt: skip
    expected = keep_tiles(image, TILES, 0.0015, nodata=9, device="cpu")
    assert np.array_equal(means.array, expected[1]) and np.array_equal(flags.array, expected[0])
    assert [(made.grid, made.block) for made in driver.launches] == [((1, 3, 1), (256, 1, 1))] * 4


def test_tiles_of_different_size_have_a_table_of_their_blocks(driver):
    image = np.random.default_rng(2).integers(0, 99, (900, 1000), np.uint8)
    tiles = np.vstack([[0, 0, 1000, 900], np.tile([5, 5, 6, 6], (3000, 1))])
    assert np.array_equal(keep_tiles(image, tiles, 0.1)[1], keep_tiles(image, tiles, 0.1, device="cpu")[1])
    (made,) = driver.launches
    assert made.grid[1] == 1 and 3001 < made.grid[0] < 3200


def test_too_many_tiles_for_the_gpu_are_refused_with_a_way_out(driver, monkeypatch):
    image = image_of("uint8", 1, False)
    monkeypatch.setattr(memory, "free_bytes", lambda: 100)
    with pytest.raises(OutOfMemoryError, match="fewer tiles"):  # 4 words, 4 tiles, 4 blocks
        keep_tiles(there(image), TILES, 0.5)
    assert not driver.launches
