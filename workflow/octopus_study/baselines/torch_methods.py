"""PyTorch's `grid_sample`, as it is, compiled, and from a CUDA graph, and torchvision's `roi_align`, on the frame as
normalised planes; and PyTorch's `interpolate` on a padded batch, the published comparison's way without TensorRT."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import need, need_torch, require_room
from octopus_study.baselines.graphs import WHY_DIFFERENT, pad, padded_shape
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod, require_gpu

# Tries more block sizes for its kernels, and launches them one by one: the graph is an entry of its own.
COMPILED = {"fullgraph": True, "dynamic": False, "mode": "max-autotune-no-cudagraphs"}
CHUNK_VALUES = 1 << 28  # of the padded batch as float32 at a time: 1 GiB


class TorchMethod(CropMethod):
    """A method on PyTorch's current stream, which is the default stream unless someone changes it."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        torch = self.torch = need_torch(job.device, "baselines")
        self.device = torch.device(job.device)
        self.frame = self._tensor(job.working_frame)
        mean, std = (torch.tensor(values, dtype=torch.float32).reshape(-1, 1, 1) for values in (job.mean, job.std))
        self.gain, self.bias = (1 / std).to(self.device), (-mean / std).to(self.device)
        self._result: Any = None

    def _tensor(self, array: Any) -> Any:
        """A tensor over the same memory; read-only host arrays are copied, since PyTorch has no such tensors."""
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()
        return self.torch.as_tensor(array, device=self.device)

    def empty(self, *shape: int, on_host: bool = False) -> Any:
        """Uninitialised float32, on the device or where the device copies it from."""
        place = {"pin_memory": self.job.on_gpu} if on_host else {"device": self.device}
        return self.torch.empty(shape, dtype=self.torch.float32, **place)

    def output(self) -> Any:
        return self._result

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return self._result[::every].cpu().numpy()

    def allocator_peak(self) -> int | None:
        return int(self.torch.cuda.max_memory_allocated()) if self.job.on_gpu else None


class OnPlanes(TorchMethod):
    """A method on the frame as normalised planes. Normalisation and interpolation are linear and commute, so it
    normalises the frame once instead of every crop: at 1080p that are 2 million pixels in place of 50 thousand per
    crop."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        height, width, channels = job.frame.shape
        self._planes = self.empty(1, channels, height, width)

    def planes(self) -> Any:
        """The frame as normalised planes (1, C, H, W), in one pass; every batch comes with a new frame."""
        self._result = None  # its memory is free for the next
        self.torch.addcmul(self.bias, self.frame.permute(2, 0, 1), self.gain, out=self._planes[0])
        return self._planes


class WithBoxes(TorchMethod):
    """A method that brings the boxes to the device as float32, and what follows from them is made there."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._host_boxes = self.empty(job.count, 4, on_host=True)
        self._boxes = self.empty(job.count, 4)

    def prepare(self) -> None:
        self._host_boxes.numpy()[...] = self.job.boxes
        self._boxes.copy_(self._host_boxes, non_blocking=True)


class GridSample(OnPlanes, WithBoxes):
    """The frame to normalised float planes, then `grid_sample`, which sees the planes once per box without copies.

    The grid is made on the device from the boxes. `affine_grid` would make it too, by a matrix product; but what lies
    beyond the centre of a box's outermost pixel has to be clamped, and that is done on the two axes apart, before they
    become a grid.
    """

    name = "grid-sample"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._steps = [_steps(self.torch, side, self.device) for side in job.size]
        self._grid = self.empty(job.count, *job.size, 2)

    def prepare(self) -> None:
        super().prepare()
        height, width, _ = self.job.frame.shape
        x1, y1, x2, y2 = self._boxes.split(1, dim=1)
        self._grid[..., 0] = _axis(self.torch, x1, x2, self._steps[1], width)[:, None, :]
        self._grid[..., 1] = _axis(self.torch, y1, y2, self._steps[0], height)[:, :, None]

    def kernels(self) -> None:
        self._result = _sample(self.torch, self.planes(), self._grid)


class GridSampleCompiled(WithBoxes):
    """The same as one function of frame and boxes, of which torch.compile makes one kernel. It compiles here, for the
    batch's shape, and so never in the time."""

    name = "grid-sample-compiled"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._crops = compiled(self.torch, job.size, self.gain, self.bias)
        self.prepare()
        self._make()

    def _make(self) -> None:
        self._result = None  # its memory is free for the next
        self._result = self._crops(self.frame, self._boxes)

    def kernels(self) -> None:
        self._make()


class GridSampleGraph(GridSampleCompiled):
    """The compiled function from a CUDA graph, without what PyTorch does on the host for each call."""

    name = "grid-sample-graph"

    def __init__(self, job: CropJob) -> None:
        require_gpu(job, "A CUDA graph")
        super().__init__(job)
        self._graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(self._graph):
            self._make()

    def kernels(self) -> None:
        self._graph.replay()


def compiled(torch: Any, size: tuple[int, int], gain: Any, bias: Any) -> Any:
    """`sampled` of frame and boxes, which torch.compile compiles when it is called first."""
    torch.compiler.reset()  # after eight shapes it would refuse to compile this function again
    return torch.compile(lambda frame, boxes: sampled(torch, frame, boxes, size, gain, bias), **COMPILED)


def sampled(torch: Any, frame: Any, boxes: Any, size: tuple[int, int], gain: Any, bias: Any) -> Any:
    """The crops of boxes (N, 4) on a frame (H, W, C), as planes, by `grid_sample`."""
    planes = torch.addcmul(bias, frame.permute(2, 0, 1), gain)[None]
    x1, y1, x2, y2 = boxes.float().split(1, dim=1)
    ways = ((y1, y2, size[0], frame.shape[0]), (x1, x2, size[1], frame.shape[1]))
    y, x = (_axis(torch, low, high, _steps(torch, side, boxes.device), limit) for low, high, side, limit in ways)
    grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), -1)
    return _sample(torch, planes, grid)


def _steps(torch: Any, side: int, device: Any) -> Any:
    return (torch.arange(side, device=device) + 0.5) / side


def _axis(torch: Any, low: Any, high: Any, steps: Any, limit: int) -> Any:
    """Where one axis is sampled, (N, side), in units in which the frame reaches from -1 to 1."""
    position = torch.addcmul(low, high - low, steps)
    position = torch.minimum(torch.maximum(position, low + 0.5), high - 0.5)
    return position * (2 / limit) - 1


def _sample(torch: Any, planes: Any, grid: Any) -> Any:
    planes = planes.expand(len(grid), -1, -1, -1)
    return torch.nn.functional.grid_sample(planes, grid, mode="bilinear", padding_mode="border", align_corners=False)


class RoiAlign(OnPlanes):
    """The frame to normalised float planes, then `roi_align` over all boxes: one sample per output pixel, as detectors
    pool features."""

    name = "roi-align"
    edge = "image"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._roi_align = need("torchvision.ops", "torchvision", "pip install -e './workflow[baselines]'").roi_align
        self._host_rois = self.empty(job.count, 5, on_host=True)
        self._rois = self.empty(job.count, 5)

    def prepare(self) -> None:
        rois: np.ndarray = self._host_rois.numpy()
        rois[:, 0] = 0
        rois[:, 1:] = self.job.boxes
        self._rois.copy_(self._host_rois, non_blocking=True)

    def kernels(self) -> None:
        self._result = self._roi_align(self.planes(), self._rois, self.job.size, sampling_ratio=1, aligned=True)


class PaddedTorch(TorchMethod):
    """Crops padded on the host and uploaded as uint8, then to float, resized and normalised, a chunk at a time. Chunks
    bound the memory of the float copy. They cost nothing, since each of them fills the GPU."""

    name = "padded-torch"
    why_different = WHY_DIFFERENT

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        shape, crop = padded_shape(job), prod(job.crops_shape[1:])
        item = prod(shape[1:])
        self._chunk = max(1, min(job.count, CHUNK_VALUES // item))
        self._host: NDArray[np.uint8]
        if job.on_gpu:
            from octopus.backends.cuda.memory import pinned

            # uint8 batch and result; of a chunk: float copy, its planes, and the resized crops
            require_room(self.name, "cuda", job.count * (item + 4 * crop) + 4 * self._chunk * (2 * item + crop))
            self._host = pinned(shape, np.uint8)
            self._padded = self.torch.empty(shape, dtype=self.torch.uint8, device=self.device)
        else:
            self._host = np.empty(shape, np.uint8)
            self._padded = self.torch.from_numpy(self._host)
        self._result = self.empty(job.count, job.frame.shape[2], *job.size)

    def prepare(self) -> None:
        pad(self.job, self._host)
        if self.job.on_gpu:
            self._padded.copy_(self.torch.from_numpy(self._host), non_blocking=True)

    def kernels(self) -> None:
        torch, size = self.torch, self.job.size
        for padded, crops in zip(self._padded.split(self._chunk), self._result.split(self._chunk), strict=True):
            planes = padded.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
            resized = torch.nn.functional.interpolate(planes, size, mode="bilinear", align_corners=False)
            torch.addcmul(self.bias, resized, self.gain, out=crops)
