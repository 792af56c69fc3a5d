"""The published method (P1): eight int32 per object, crop and resize to uint8, then normalise."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.fused import LAUNCH_BOUND
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod

WHY_DIFFERENT = "rounds to uint8 between its two passes"
FIELDS = 8


def build_metadata(job: CropJob) -> NDArray[np.int32]:
    """Eight int32 per object: x, y, w, h, frame and result size; a Python loop over objects, as published. The source
    reports about 1 µs per object, which is the price of such a loop."""
    frame_height, frame_width, _ = job.frame.shape
    height, width = job.size
    rows = [
        (x1, y1, x2 - x1, y2 - y1, frame_width, frame_height, width, height) for x1, y1, x2, y2 in job.boxes.tolist()
    ]
    return np.array(rows, np.int32).reshape(-1, FIELDS)


class Published(CropMethod):
    """Both passes over all objects, one launch each."""

    name = "published"
    why_different = WHY_DIFFERENT

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.passes = _GpuPasses(job) if job.on_gpu else _CpuPasses(job)
        self.metadata = build_metadata(job)
        self.passes.upload(self.metadata)

    def build(self) -> NDArray[np.int32]:
        return build_metadata(self.job)

    def upload(self) -> None:
        self.passes.upload(self.metadata)

    def crop_resize(self) -> None:
        """Stage: first pass."""
        self.passes.crop_resize(0, self.job.count, self.passes.blocks_together)

    def normalize(self) -> None:
        """Stage: second pass."""
        self.passes.normalize(0, self.job.count)

    def kernels(self) -> None:
        self.crop_resize()
        self.normalize()

    def take(self, job: CropJob) -> None:
        """Go on with another job: a frame of the same size in the same device memory, no more boxes than at first."""
        self.job = self.passes.job = job

    def run(self) -> None:
        self.passes.upload(self.build())
        self.kernels()


class NLaunches(Published):
    """The published passes, launched once per object each. On a GPU a crop that is alone gets as many blocks as fill
    it, where `published` has one per crop: a single block would take longer than the launch that is to be measured."""

    name = "n-launches"
    why_no_device = LAUNCH_BOUND

    def run(self) -> None:
        self.passes.upload(self.build())
        for index in range(self.job.count):
            self.passes.crop_resize(index, 1, self.passes.blocks_alone)
            self.passes.normalize(index, 1)


class _CpuPasses:
    """The passes as Numba functions over slices of the batch."""

    blocks_together = blocks_alone = 1  # the CPU has no blocks to choose

    def __init__(self, job: CropJob) -> None:
        from octopus_study.kernels.cpu import published

        self._kernels = published
        self.job = job
        self._crops = np.empty(job.crops_shape, np.uint8)
        self._metadata: NDArray[np.int32] = np.empty((0, FIELDS), np.int32)

    def upload(self, metadata: NDArray[np.int32]) -> None:
        self._metadata = metadata

    def crop_resize(self, first: int, count: int, blocks: int) -> None:
        part = slice(first, first + count)
        self._kernels.crop_resize(self.job.frame, self._metadata[part], self._crops[part])

    def normalize(self, first: int, count: int) -> None:
        part = slice(first, first + count)
        self._kernels.normalize(self._crops[part], *self.job.affine, self.job.out[part])


class _GpuPasses:
    """The passes launched through Numba's dispatcher with array arguments, as published."""

    blocks_together = 1  # as published: one block per crop

    def __init__(self, job: CropJob) -> None:
        from numba import config, cuda

        from octopus.backends.cuda.memory import DeviceArray, copy, upload
        from octopus_study.kernels.cuda import published

        # One block per crop is the published launch, and Numba would warn of it at every size.
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        self._kernels = published
        self.job = job
        pixels = job.size[0] * job.size[1]
        self.blocks_alone = -(-pixels // published.THREADS)
        self._copy = copy
        self._metadata = DeviceArray((job.count, FIELDS), np.int32)
        arrays = (
            job.device_frame, self._metadata, DeviceArray(job.crops_shape, np.uint8), job.out,
            *(upload(values) for values in job.affine),
        )  # fmt: skip
        views: list[Any] = [cuda.as_cuda_array(array, sync=False) for array in arrays]
        self._frame, self._rows, self._crops, self._out, self._mean, self._inverse_std = views

    def upload(self, metadata: NDArray[np.int32]) -> None:
        self._copy(self._metadata.pointer, metadata.ctypes.data, metadata.nbytes)

    def crop_resize(self, first: int, count: int, blocks: int) -> None:
        grid = (blocks, count)
        self._kernels.crop_resize[grid, self._kernels.THREADS](self._frame, self._rows, self._crops, first)

    def normalize(self, first: int, count: int) -> None:
        grid = (self.blocks_alone, count)
        self._kernels.normalize[grid, self._kernels.THREADS](
            self._crops, self._mean, self._inverse_std, self._out, first
        )
