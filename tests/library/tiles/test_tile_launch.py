"""What tiles are launched with on a pretended GPU; values are those of `cases`."""

import numpy as np
import pretended
import pytest

from octopus import TilePlan, keep_tiles
from octopus.backends.cuda import memory
from octopus.errors import OutOfMemoryError
from octopus.kernels import arguments
from octopus.tiles import api

TILES_AT = arguments.TILES.place("tiles")
TILES = np.array([[0, 0, 40, 30], [39, 29, 40, 30], [3, 0, 4, 30], [0, 8, 40, 9]])
IMAGE = np.random.default_rng(1).integers(0, 200, (30, 40), np.uint8)


def test_tiles_on_the_gpu_are_read_where_they_are(gpu):
    image, tiles = gpu.put(IMAGE), gpu.put(TILES)
    plan = TilePlan(image, tiles)
    for _ in range(2):
        plan.run(image)
        assert gpu.launches[-1].values[TILES_AT] == tiles.pointer


def test_images_are_read_from_the_multiple_of_16_before_them_and_few_launches_are_kept(gpu, monkeypatch):
    monkeypatch.setattr(api, "MOST_LAUNCHES", 3)
    plan, block = TilePlan(gpu.put(IMAGE), TILES), pretended.memory(1300)
    for shift, threshold in [(0, 0.3), (16, 0.3), (5, 0.3), (5, 0.4), (6, 0.4), (7, 0.4), (0, 0.3)]:
        image = pretended.OnGpu(block[shift : shift + 1200].reshape(30, 40))
        flags, means = plan.run(image, threshold)
        source, head, *_ = values = gpu.launches[-1].values
        assert source % 16 == 0 and 0 <= head < 16 and source + head == image.pointer
        assert values[-3:] == (threshold, means.pointer, flags.pointer)
    assert len(plan.engine._launches) <= 3


def test_a_large_tile_among_small_ones_is_shared_by_many_blocks(gpu):
    tiles = np.vstack([[0, 0, 1000, 900], np.tile([5, 5, 6, 6], (3000, 1))])
    keep_tiles(np.zeros((900, 1000), np.uint8), tiles, 0.1, device="cuda")
    (made,) = gpu.launches
    assert made.grid[1] == 1 and 3001 < made.grid[0] < 3200


def test_too_many_tiles_for_the_gpu_are_refused_with_a_way_out(gpu, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 100)
    with pytest.raises(OutOfMemoryError, match="fewer tiles"):  # 4 words, 4 tiles, 4 blocks
        keep_tiles(gpu.put(IMAGE), TILES, 0.5)
    assert not gpu.launches
