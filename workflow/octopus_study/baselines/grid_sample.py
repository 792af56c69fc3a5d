"""PyTorch's `grid_sample` on a grid of all boxes, clamped at their edges: the same answer as Octopus."""

from __future__ import annotations

from typing import Any

from octopus_study.baselines.job import CropJob
from octopus_study.baselines.torch_method import TorchMethod


class GridSample(TorchMethod):
    """The frame to normalised float planes, then `grid_sample`, which sees the planes once per box without copies.

    The grid is made on the device from the boxes. `affine_grid` would make it too, by a matrix product; but what lies
    beyond the centre of a box's outermost pixel has to be clamped, and that is done on the two axes apart, before they
    become a grid.
    """

    name = "grid-sample"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        height, width, channels = job.frame.shape
        self._planes = self.empty(1, channels, height, width)
        self._host_boxes = self.empty(job.count, 4, on_host=True)
        self._boxes = self.empty(job.count, 4)
        self._steps = [(self.torch.arange(side, device=self.device) + 0.5) / side for side in job.size]
        self._grid = self.empty(job.count, *job.size, 2)

    def prepare(self) -> None:
        self._host_boxes.numpy()[...] = self.job.boxes
        self._boxes.copy_(self._host_boxes, non_blocking=True)
        height, width, _ = self.job.frame.shape
        x1, y1, x2, y2 = self._boxes.split(1, dim=1)
        self._grid[..., 0] = self._axis(x1, x2, self._steps[1], width)[:, None, :]
        self._grid[..., 1] = self._axis(y1, y2, self._steps[0], height)[:, :, None]

    def _axis(self, low: Any, high: Any, steps: Any, limit: int) -> Any:
        """Where one axis is sampled, (N, side), in units in which the frame reaches from -1 to 1."""
        position = self.torch.addcmul(low, high - low, steps)
        position = self.torch.minimum(self.torch.maximum(position, low + 0.5), high - 0.5)
        return position * (2 / limit) - 1

    def kernels(self) -> None:
        self._result = None  # its memory is free for the next
        planes = self.planes(self._planes).expand(self.job.count, -1, -1, -1)
        self._result = self.torch.nn.functional.grid_sample(
            planes, self._grid, mode="bilinear", padding_mode="border", align_corners=False
        )
