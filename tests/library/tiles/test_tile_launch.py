"""What a `TilePlan` hands to the driver, without a GPU: host memory stands for its memory, NumPy for the kernel."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types

from octopus import TilePlan, backends, keep_tiles
from octopus.arrays import memory as plan_memory
from octopus.arrays import streams
from octopus.arrays.views import ArrayView
from octopus.backends.cuda import compile, device, memory
from octopus.errors import OutOfMemoryError
from octopus.kernels.cuda.tile_grid import Grid
from octopus.tiles import cuda

LETTERS = {"int32": "i", "uint32": "i", "int64": "q", "float64": "d"}
H200 = SimpleNamespace(multiprocessor_count=132)
QUEUE = SimpleNamespace(sync=lambda: None, wait=lambda other: None)


class Memory:
    """A `DeviceArray` in memory of the host."""

    def __init__(self, shape, dtype, *, stream=None):
        self.array = np.full(shape, 77, dtype)
        self.shape, self.dtype, self.nbytes = self.array.shape, self.array.dtype, self.array.nbytes
        self.pointer = self.array.ctypes.data
        self.__cuda_array_interface__ = self.array.__array_interface__

    def copy_from_host(self, array, stream=None):
        self.array[...] = array
        return self


def at(address, shape, dtype, strides=None):
    """An array on memory whose address is known."""
    nbytes = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if strides else np.prod(shape)
    block = (ctypes.c_uint8 * int(nbytes * np.dtype(dtype).itemsize)).from_address(address)
    return np.ndarray(shape, dtype, block, strides=strides)


def tiles_of(work, blocks):
    """How many tiles a table of blocks is for, after a look at it."""
    table = at(work, (blocks, 4), np.int32)
    count = int(table[:, 0].max()) + 1
    parts = dict(table[:, ::2].tolist())
    named = [(tile, number) for tile in parts for number in range(parts[tile])]
    assert sorted(map(tuple, table[:, :2].tolist())) == sorted(named)
    return count


def launched(kernel, geometry, stream, arguments):
    """Do what the kernel would."""
    letters = ["Q" if isinstance(kind, types.CPointer) else LETTERS[kind.name] for kind in kernel.signature]
    assert "".join(letters) == arguments.kinds
    source, head, end, pitch, width, height, pixel, *rest = arguments.values()
    tiles, work, _, words, absent, nodata, scale, level, means, flags = rest
    _, dtype, tile_dtype, *options = kernel.name.split("-")
    item = np.dtype(dtype).itemsize
    count = tiles_of(work, geometry[0]) if work else geometry[0]
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
    kernel.launches.append(geometry)


@pytest.fixture
def launches(monkeypatch):
    """Geometries of the launches so far."""
    found = []

    def load(name, build):
        function, signature = build()
        assert function.__code__.co_argcount == len(signature)
        return SimpleNamespace(name=name, signature=signature, launches=found)

    monkeypatch.setattr(compile, "load", load)
    monkeypatch.setattr(cuda, "submit", launched)
    monkeypatch.setattr(cuda, "function_of", lambda kernel: kernel)
    monkeypatch.setattr(memory, "DeviceArray", Memory)
    monkeypatch.setattr(memory, "copy", lambda to, source, nbytes, stream: ctypes.memmove(to, source, nbytes))
    monkeypatch.setattr(memory, "free_bytes", lambda: 1 << 30)
    monkeypatch.setattr(device, "is_capturing", lambda stream: False)
    monkeypatch.setattr(device, "current", lambda: SimpleNamespace(properties=H200))
    monkeypatch.setattr(device, "compute_capability", lambda: (9, 0))
    monkeypatch.setattr(backends, "resolve", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(streams, "stream_for", lambda *_: QUEUE)
    monkeypatch.setattr(streams, "check_ordinals", lambda *_: None)
    monkeypatch.setattr(plan_memory, "current", lambda: SimpleNamespace(device_id=0))
    cuda._kernel.cache_clear()
    yield found
    cuda._kernel.cache_clear()


TILES = np.array([[0, 0, 40, 30], [39, 29, 40, 30], [3, 0, 4, 30], [0, 8, 40, 9]])


def image_of(dtype, channels, wide):
    pixels = np.random.default_rng(1).integers(0, 200, (30, 40 + 7 * wide, channels), dtype)
    return pixels[:, 3:43] if wide else pixels


@pytest.mark.parametrize("nodata", [None, 5])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("dtype", "channels"), [("uint8", 1), ("uint8", 3), ("uint16", 1), ("uint16", 4)])
def test_images_from_the_host_and_on_the_gpu(launches, dtype, channels, wide, nodata):
    image = image_of(dtype, channels, wide)
    options = {"scale": 3.0, "nodata": nodata}
    expected = keep_tiles(image, TILES, 33.3, device="cpu", **options)
    found = keep_tiles(image, TILES, 33.3, **options)
    on_gpu = ArrayView(
        image.ctypes.data, image.shape, image.strides, image.dtype, "cuda", "other", image
    )  # fmt: skip
    results = keep_tiles(on_gpu, TILES, 33.3, **options)
    for left, right, other in zip(expected, found, results, strict=True):
        assert np.array_equal(left, right) and np.array_equal(left, other.array)
    assert len(launches) == 2 and launches[0] == launches[1]


def test_tiles_on_the_gpu_are_read_where_they_are(launches):
    image, tiles = image_of("uint8", 1, False), TILES.astype(np.int64)
    views = [
        ArrayView(array.ctypes.data, array.shape, array.strides, array.dtype, "cuda", "other", array)
        for array in (image, tiles)
    ]
    plan = TilePlan(views[0], views[1])
    first = plan.run(views[0])[1].array.copy()
    tiles[0] = 0, 0, 1, 1
    assert plan.run(views[0])[1].array[0] == image[0, 0, 0] / 255 != first[0]


def test_a_launch_per_tile_gives_the_same(launches):
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
    assert launches == [(1, 3, 1, 256, 1, 1)] * 4


def test_tiles_of_different_size_have_a_table_of_their_blocks(launches):
    image = np.random.default_rng(2).integers(0, 99, (900, 1000), np.uint8)
    tiles = np.vstack([[0, 0, 1000, 900], np.tile([5, 5, 6, 6], (3000, 1))])
    assert np.array_equal(keep_tiles(image, tiles, 0.1)[1], keep_tiles(image, tiles, 0.1, device="cpu")[1])
    assert launches[0][1] == 1 and 3001 < launches[0][0] < 3200


def test_too_many_tiles_for_the_gpu_are_refused_with_a_way_out(launches, monkeypatch):
    image = image_of("uint8", 1, False)
    on_gpu = ArrayView(image.ctypes.data, image.shape, image.strides, image.dtype, "cuda", "other", image)
    monkeypatch.setattr(memory, "free_bytes", lambda: 100)
    with pytest.raises(OutOfMemoryError, match="fewer tiles"):  # 4 words, 4 tiles, 4 blocks
        keep_tiles(on_gpu, TILES, 0.5)
    assert not launches
