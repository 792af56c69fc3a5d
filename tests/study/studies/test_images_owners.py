"""Who owns which tile: each way tells every block its image and its tile, and all make the same tiles."""

from types import SimpleNamespace

import numpy as np
import pytest

from octopus.images.cuda import Launch, cut, kernel_of
from octopus.kernels.images import IMAGE
from octopus_study.studies.images import owners
from octopus_study.studies.images.job import BATCH, ROWS, ImageJob

SIZES = [(700, 300), (64, 512), (256, 256), (1500, 90), (100, 100)]
RECORD = IMAGE.itemsize


class Kernel:
    """Cuts images into tiles as on an H200, and keeps what it is launched with."""

    def __init__(self, spec, owner):
        self.kind, self.item, self.owner, self.launches = kernel_of(spec), spec.item, owner, []

    def prepare(self, table):
        found = cut(self.kind, table, self.item, 227 << 10, 132)
        return Launch(self, found.blocks, found)

    def prepared(self, made, count, grid=None):
        threads = 32 * made.cut.warps

        def launch(stream, addresses):
            assert addresses[1] == addresses[2]
            self.launches.append((grid or (made.blocks, 1), addresses[1], count, threads))
            return 0

        return launch


class Uploaded:
    """A slot of page-locked memory, at address 0."""

    address = 0

    def __init__(self):
        self.array = np.zeros(1 << 20, np.uint8)

    def take(self, nbytes):
        return self

    def twin(self, queue):
        return 0

    def sent(self, queue):
        """Nothing is pending."""


@pytest.fixture
def made(monkeypatch):
    slot, copied = Uploaded(), []
    monkeypatch.setattr(owners, "require_gpu", lambda job, product: None)
    monkeypatch.setattr(owners, "compute_capability", lambda: (9, 0))
    monkeypatch.setattr(owners, "OwnedKernel", Kernel)
    monkeypatch.setattr(owners, "Staging", lambda slots: slot)
    monkeypatch.setattr(owners, "stream_of", lambda stream: None)
    monkeypatch.setattr(owners.memory, "copy", lambda to, source, nbytes, queue: copied.append(nbytes))

    def make(kind, task):
        job = ImageJob([np.zeros((*size, 3), np.uint8) for size in SIZES], task, "cpu")
        job.__dict__["out"] = SimpleNamespace(pointer=8)
        copied.clear()
        found = kind(job)
        assert copied == [found.table_bytes]
        return found, slot.array[: found.table_bytes]

    return make


def tiles_of(method, memory):
    """Place of the result and tile of every block that has one, by what the kernel of its owner would do."""
    found, numbers = set(), memory[len(SIZES) * RECORD :].view(np.int32)
    for (across, down), table, count, threads in method._kernel.launches:
        records = memory[table : table + count * RECORD].view(IMAGE)
        for block in range(across):
            for row in range(down):
                if method.owner == "padded_grid":
                    item = row
                elif method.owner == "block_metadata":
                    item = numbers[block]
                elif method.owner == "lookup":
                    (item,) = set(numbers[block * threads : (block + 1) * threads].tolist())
                else:
                    item = np.searchsorted(records["first_tile"], block, side="right") - 1
                tile = block - int(records["first_tile"][item])
                assert (int(records["out"][item]), tile) not in found
                found.add((int(records["out"][item]), tile))
    return found


@pytest.mark.parametrize("task", [ROWS, BATCH])
@pytest.mark.parametrize("kind", owners.OWNERS)
def test_every_way_makes_the_tiles_of_block_search(kind, task, made):
    expected = tiles_of(*made(owners.BlockSearch, task))
    found = tiles_of(*made(kind, task))
    assert len(expected) > len(SIZES) and (found >= expected if kind is owners.PaddedGrid else found == expected)


def test_what_a_launch_is_told(made):
    def told(kind):
        return made(kind, ROWS)[0].table_bytes - len(SIZES) * RECORD

    blocks = len(tiles_of(*made(owners.BlockSearch, ROWS)))
    threads = made(owners.BlockSearch, ROWS)[0]._kernel.launches[0][3]
    assert told(owners.BlockMetadata) == 4 * blocks and told(owners.Lookup) == 4 * blocks * threads
    assert all(told(kind) == 0 for kind in (owners.BlockSearch, owners.ThreadSearch, owners.PaddedGrid))
