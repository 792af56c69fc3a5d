"""kornia-rs: resize and normalise in one pass, an image at a time on a GPU, and a list of images on a CPU."""

from typing import Any

import numpy as np

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.baselines.fused import LAUNCH_BOUND
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod, blocking_stream

INSTALL = "pip install -e './workflow[baselines]'"
LEVELS = 255  # it takes mean and deviation as parts of the range of uint8


class Kornia(CropMethod):
    """On a CPU `resize_normalize_to_tensor_batch`, on the threads that it chooses itself. On a GPU its `Preprocessor`
    takes one image per launch, and that in one piece, so that each crop is copied first; the results are copied into
    the batch."""

    name = "kornia-rs"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._kornia = need("kornia_rs", "kornia-rs", INSTALL)
        if job.frame.shape[2] != 3:
            raise Unavailable(f"kornia-rs takes 3 channels, the frame has {job.frame.shape[2]}")
        mean, std = ([value / LEVELS for value in values] for values in (job.mean, job.std))
        self._affine = mean, std
        if job.on_gpu:
            self.why_no_device = LAUNCH_BOUND
            self._prepare_gpu()

    def _prepare_gpu(self) -> None:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        kornia, (mean, std) = self._kornia, self._affine
        load_nvidia_dynamic_lib("nvrtc")  # kornia-rs looks for it on the linker's path alone
        torch = need("torch", "PyTorch, whose slices kornia-rs takes as images", INSTALL)
        self._frame = torch.as_tensor(self.job.device_frame, device="cuda")
        self._out = torch.as_tensor(self.job.out, device="cuda")
        self._queue = blocking_stream()
        stream = kornia.cuda.Stream.from_handle(int(self._queue.handle))
        self._preprocessor = kornia.Preprocessor(
            mode="stretch", format="rgb", sampling="bilinear", mean=tuple(mean), std=tuple(std), stream=stream
        )
        self._as_tensor = torch.from_dlpack

    def run(self) -> None:
        if self.job.on_gpu:
            self._run_gpu()
            return
        crops = [np.ascontiguousarray(self.job.frame[y1:y2, x1:x2]) for x1, y1, x2, y2 in self.job.boxes.tolist()]
        planes = self._kornia.pipeline.resize_normalize_to_tensor_batch(crops, self.job.size, *self._affine)
        np.stack(planes, out=self.job.out)

    def _run_gpu(self) -> None:
        image: Any = self._kornia.image.Image
        for planes, (x1, y1, x2, y2) in zip(self._out, self.job.boxes.tolist(), strict=True):
            crop = image.from_dlpack(self._frame[y1:y2, x1:x2].contiguous())
            made = self._preprocessor.run(crop, x2 - x1, y2 - y1, *self.job.size)
            planes.copy_(self._as_tensor(made)[0], non_blocking=True)
