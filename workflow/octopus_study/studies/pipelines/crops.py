"""Crops of a detector's boxes for a second network, frame by frame: boxes that never leave the GPU, whose number it
alone knows, against what takes all boxes that there may be in one call, and the loops that documentation shows."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus_study.baselines.availability import need, need_torch
from octopus_study.baselines.job import TOLERANCE_LEVELS
from octopus_study.baselines.torch_methods import compiled, sampled
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Row
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import reference_of
from octopus_study.studies.pipelines.method import Step, compared, steps_of

CROPS = "crops"
ACROSS = "reads across the edge of a box"
ROUNDED = "OpenCV rounds to bytes before they are normalised"


class FrameCrops(Step):
    """A frame and a detector's boxes on the GPU, the `counting` good ones first, and their number as a tensor."""

    def __init__(self, context: Context, boxes: NDArray[np.int32], counting: int) -> None:
        crop, frame = context.config.crop, context.workload.frame
        self.torch = need_torch(context.device, "baselines")
        self.counting, self.size, self.device = counting, tuple(crop.size), context.device
        self.tolerance = TOLERANCE_LEVELS / max(crop.std)
        self.normal = {"mean": list(crop.mean), "std": list(crop.std)}
        on = partial(self.torch.tensor, device=context.device)
        self.frame, self.boxes = self.torch.from_numpy(frame).to(context.device), on(boxes)
        self.number = on(counting, dtype=self.torch.int32)
        self.mean, self.std = (on(values).view(-1, 1, 1) for values in self.normal.values())

    def result(self, every: int = 1) -> NDArray[np.float32]:
        crops: NDArray[np.float32] = self.made[: self.counting].cpu().numpy()
        return crops


class Plan(FrameCrops):
    """One launch for all boxes that there may be; the GPU looks how many count."""

    name = "octopus"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._plan = CropPlan(self.frame, len(self.boxes), self.size, **self.normal)

    def run(self) -> None:
        self.made = self._plan.run(self.frame, self.boxes, count=self.number)


class GridSample(FrameCrops):
    """`grid_sample` over all boxes that there may be, so that nothing waits for their number."""

    name = "grid-sample"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._crops = self.crops(self.torch, self.size, 1 / self.std, -self.mean / self.std)

    def crops(self, *given: Any) -> Any:
        """A function of frame and boxes."""
        torch, *normal = given
        return lambda frame, boxes: sampled(torch, frame, boxes, *normal)

    def run(self) -> None:
        self.made = self._crops(self.frame, self.boxes)


class Compiled(GridSample):
    """The same by torch.compile, which compiles when the answer is checked."""

    name = "grid-sample-compiled"

    def crops(self, *given: Any) -> Any:
        return compiled(*given)


class RoiAlign(FrameCrops):
    """`roi_align` over all boxes that there may be, on the frame as normalised planes."""

    name, why_different = "roi-align", ACROSS

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._roi_align = need("torchvision.ops", "torchvision", "pip install -e './workflow[baselines]'").roi_align

    def run(self) -> None:
        planes = self.torch.addcmul(-self.mean / self.std, self.frame.permute(2, 0, 1), 1 / self.std)[None]
        rois = self.torch.nn.functional.pad(self.boxes.float(), (1, 0))  # each of image 0
        self.made = self._roi_align(planes, rois, self.size, sampling_ratio=1, aligned=True)


class TorchLoop(FrameCrops):
    """The boxes copied to the host, then cut and resized one by one, where the frame is."""

    name = "torch-loop"

    def run(self) -> None:
        made = [self._crop(*box) for box in self.boxes[: int(self.number)].tolist()]
        self.made = (self.torch.cat(made) - self.mean) / self.std

    def _crop(self, x1: int, y1: int, x2: int, y2: int) -> Any:
        pixels = self.frame[y1:y2, x1:x2].permute(2, 0, 1)[None].float()
        return self.torch.nn.functional.interpolate(pixels, self.size, mode="bilinear")


class OpenCvLoop(FrameCrops):
    """As trackers have it: boxes copied to the host, where the frame is too, resized by OpenCV with as many threads as
    the others have, and brought back."""

    name, why_different = "opencv-loop", ROUNDED

    def __init__(self, context: Context, *given: Any) -> None:
        super().__init__(context, *given)
        self._pixels = context.workload.frame
        cv2.setNumThreads(context.thread_count)

    def run(self) -> None:
        height, width = self.size
        boxes = self.boxes[: int(self.number)].tolist()
        made = np.stack([cv2.resize(self._pixels[y1:y2, x1:x2], (width, height)) for x1, y1, x2, y2 in boxes])
        there = self.torch.from_numpy(made).to(self.device).permute(0, 3, 1, 2)
        self.made = (there.float() - self.mean) / self.std


KINDS = (Plan, GridSample, Compiled, RoiAlign, TorchLoop, OpenCvLoop)
METHODS = tuple(kind.name for kind in KINDS)


def parts(context: Context) -> Iterator[Part]:
    """One part for each number of detections."""
    settings = context.config.pipelines
    for counting in settings.detections:
        case = context.case(f"crops-{counting}", settings.most_detections)
        yield Part(partial(_measure, counting=counting), (Comparison(case, CROPS, "host", METHODS),))


def _measure(context: Context, part: Part, counting: int) -> list[Row]:
    boxes = sample_boxes(context.workload.pool, part.case.n, context.seed)
    makers = {kind.name: partial(kind, context, boxes, counting) for kind in KINDS}
    steps, missing = steps_of(part, context, makers)
    right = reference_of(context).of(boxes[:counting])
    return compared(context, part.comparisons[0], steps, missing, lambda step: right)
