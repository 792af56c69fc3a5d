"""Who owns which tile: the strategies of the study `mapping`, a grid padded to the largest image, a launch per image.

All have the tiles and the kernel of Octopus but for how a block knows its image, and one way from the list to the
result: a table of records, what the strategy needs behind it, one upload, and the launch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.launch import PreparedLaunch, launch
from octopus.arrays.staging import Staging
from octopus.backends.cuda import compile, memory, stream_of
from octopus.backends.cuda.device import compute_capability
from octopus.images.calls import Pattern, pattern_of, table_of
from octopus.images.cuda import TENSOR_CAPABILITY, Launch, TensorKernel
from octopus.images.sources import Found, look
from octopus.images.spec import ImageSpec
from octopus.kernels.images import IMAGE
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.method import require_gpu
from octopus_study.kernels.cuda import FOLDER
from octopus_study.studies.images.job import ImageJob
from octopus_study.studies.images.own import OctopusImages

Cells = NDArray[Any]


class OwnedKernel(TensorKernel):
    """The kernel of Octopus but for how a block knows its image."""

    def __init__(self, spec: ImageSpec, owner: str) -> None:
        super().__init__(spec)
        self._owner = owner

    def compiled(self) -> Any:
        if self._owner == BlockSearch.owner:
            return super().compiled()
        from octopus_study.kernels.cuda.image_owners import build_owned

        return compile.load(f"{self.built[0]}-{self._owner}", partial(build_owned, self.kind, self._owner), FOLDER)


class BlockSearch(OctopusImages):
    """D: a block looks for its image among the first tiles of all, the lanes of a warp together, as in Octopus."""

    name = "block-search"
    owner = "block_search"
    apart = False  # whether every image counts its tiles from 0
    table_bytes = 0  # what a launch is told

    def __init__(self, job: ImageJob) -> None:
        require_gpu(job, "the kernel that makes tiles")
        if compute_capability() < TENSOR_CAPABILITY:
            raise Unavailable("this GPU has no tensor cores for bytes, which the kernel that makes tiles needs")
        super().__init__(job)
        self._staging, self.made = Staging(2), job.out
        self._kernel = OwnedKernel(self._call(self.images)[1].spec, self.owner)
        self._launched: tuple[list[PreparedLaunch], list[int]] | None = None
        self.run()

    def _call(self, images: list[Any]) -> tuple[Found, Pattern]:
        given = {"source": None, "channels": "RGB", **self.options()}
        found, device = look(images), given.pop("device")
        return found, pattern_of(self.operation, given, found, self.sizes, device, None, None)

    def run(self) -> None:
        found, call = self._call(self.turn())
        table = table_of(call.geometry, call.items, found.pointers)
        made = self._kernel.prepare(table)
        if made is None:
            raise Unavailable("the kernel that makes tiles can't do these images")
        tiles = np.diff(table["first_tile"], append=made.blocks)
        if self.apart:
            table["first_tile"] = 0
        behind = self.told(tiles, 32 * made.cut.warps)
        self.table_bytes = table.nbytes + behind.nbytes
        slot, queue = self._staging.take(self.table_bytes + behind.itemsize), stream_of(None)
        slot.array[: table.nbytes] = table.view(np.uint8)
        slot.array[table.nbytes : self.table_bytes] = behind.view(np.uint8)
        self._launched = self.launches(made, tiles, slot.twin(queue))
        memory.copy(slot.twin(queue), slot.address, self.table_bytes, queue)
        self.kernels()
        slot.sent(queue)

    def told(self, tiles: Cells, threads: int) -> NDArray[np.int32]:
        """What goes behind the records of the table, int32; `tiles` of each image, `threads` of a block."""
        return np.empty(0, np.int32)

    def kernels(self) -> None:
        assert self._launched is not None
        launches, tables = self._launched
        out, stream = self.made.pointer, stream_of(None)
        for prepared, table in zip(launches, tables, strict=True):
            launch(prepared, (out, table, table), stream)

    def launches(self, made: Launch, tiles: Cells, table: int) -> tuple[list[PreparedLaunch], list[int]]:
        """What reads the table at an address of device memory: launches, and the part of the table that each reads."""
        return [self._kernel.prepared(made, len(tiles))], [table]


class ThreadSearch(BlockSearch):
    """B: every thread looks for it by itself."""

    name, owner = "thread-search", "thread_search"


class BlockMetadata(BlockSearch):
    """C: a number for each block."""

    name, owner = "block-metadata", "block_metadata"

    def told(self, tiles: Cells, threads: int) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(tiles), dtype=np.int32), tiles)


class Lookup(BlockSearch):
    """A: a number for each thread."""

    name, owner = "lookup", "lookup"

    def told(self, tiles: Cells, threads: int) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(tiles), dtype=np.int32), threads * tiles)


class PaddedGrid(BlockSearch):
    """As many blocks for each image as the largest needs; those beyond an image's end return at once."""

    name, owner, apart = "padded-grid", "padded_grid", True

    def launches(self, made: Launch, tiles: Cells, table: int) -> tuple[list[PreparedLaunch], list[int]]:
        return [self._kernel.prepared(made, len(tiles), grid=(int(tiles.max()), len(tiles)))], [table]


class LaunchPerImage(BlockSearch):
    """The kernel anew for each image, all of them told by one table."""

    name, apart = "launch-per-image", True

    def __init__(self, job: ImageJob) -> None:
        self._known: dict[tuple[Launch, int], PreparedLaunch] = {}
        super().__init__(job)

    def launches(self, made: Launch, tiles: Cells, table: int) -> tuple[list[PreparedLaunch], list[int]]:
        for key in {(made, blocks) for blocks in tiles.tolist()} - self._known.keys():
            self._known[key] = self._kernel.prepared(made, 1, grid=(key[1], 1))
        launches = [self._known[made, blocks] for blocks in tiles.tolist()]
        return launches, [table + number * IMAGE.itemsize for number in range(len(tiles))]


OWNERS = (Lookup, ThreadSearch, BlockMetadata, BlockSearch, PaddedGrid, LaunchPerImage)
