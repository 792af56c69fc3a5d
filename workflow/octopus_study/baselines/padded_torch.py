"""PyTorch's `interpolate` on a padded batch: the published comparison's way, without TensorRT."""

from __future__ import annotations

from math import prod

from octopus_study.baselines.availability import require_room
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.padding import WHY_DIFFERENT, PaddedBatch
from octopus_study.baselines.torch_method import TorchMethod

CHUNK_VALUES = 1 << 28  # of the padded batch as float32 at a time: 1 GiB


class PaddedTorch(TorchMethod):
    """Crops padded on the host and uploaded as uint8, then to float, resized and normalised, a chunk at a time.

    Chunks bound the memory of the float copy. They cost nothing, since each of them fills the GPU.
    """

    name = "padded-torch"
    why_different = WHY_DIFFERENT

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._batch = PaddedBatch(job)
        item, count = prod(self._batch.shape[1:]), job.count
        self._chunk = max(1, min(count, CHUNK_VALUES // item))
        self._require_room(item)
        torch = self.torch
        self._host = torch.from_numpy(self._batch.values)
        on_gpu = job.on_gpu
        self._padded = torch.empty(self._batch.shape, dtype=torch.uint8, device=self.device) if on_gpu else self._host
        self._result = self.empty(count, job.frame.shape[2], *job.size)

    def _require_room(self, item: int) -> None:
        if self.job.on_gpu:
            crop = prod(self.job.size) * self.job.frame.shape[2]
            # uint8 batch and result; of a chunk: float copy, its planes, and the resized crops
            needed = self.job.count * (item + 4 * crop) + 4 * self._chunk * (2 * item + crop)
            require_room(self.name, "GPU", needed, int(self.torch.cuda.mem_get_info()[0]))

    def prepare(self) -> None:
        self._batch.fill()
        if self.job.on_gpu:
            self._padded.copy_(self._host, non_blocking=True)

    def kernels(self) -> None:
        torch, size = self.torch, self.job.size
        for padded, crops in zip(self._padded.split(self._chunk), self._result.split(self._chunk), strict=True):
            planes = padded.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
            resized = torch.nn.functional.interpolate(planes, size, mode="bilinear", align_corners=False)
            torch.addcmul(self.bias, resized, self.gain, out=crops)
