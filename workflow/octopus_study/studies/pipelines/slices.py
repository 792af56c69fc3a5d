"""A frame of 4K for a detector of small images: in overlapping slices, all of them one batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import crop_resize
from octopus_study.measure import Case, Row
from octopus_study.peers.availability import need, need_torch
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.pictures import cut
from octopus_study.studies.pipelines.method import Step, compared, made_of, thinned

SLICED = "slices"
FRAME = (2160, 3840)
OVERLAP = 0.2
INSTALL = "pip install sahi"


def places(side: int) -> NDArray[np.int32]:
    """Slices x1, y1, x2, y2 of the frame, (N, 4), by the usual rule: the last of a row is moved back into the frame."""
    step = side - int(OVERLAP * side)
    starts = [
        [min(first, length - side) for first in range(0, max(length - side + step, 1), step)]
        for length in FRAME
    ]
    return np.array([[x, y, x + side, y + side] for y in starts[0] for x in starts[1]], np.int32)


class Slices(Step):
    """From a frame on the host to slices where the detector is, (N, 3, side, side), values from 0 to 1."""

    tolerance = 1e-6

    def __init__(self, frame: NDArray[np.uint8], side: int, device: str) -> None:
        self.torch = need_torch(device, "peers")
        self.frame, self.side, self.device = frame, side, device


class OneLaunch(Slices):
    """The frame brought to the device once, and one launch."""

    name = "octopus"

    def run(self) -> None:
        """One upload, one call."""
        there = self.torch.from_numpy(self.frame).to(self.device)
        self.made = crop_resize(there, places(self.side), self.side, scale=255)


class Sahi(Slices):
    """Sahi's slices, each made ready as its models do: to a tensor, to the device, to values from 0 to 1."""

    name = "sahi"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._slice = need("sahi.slicing", "sahi", INSTALL).slice_image

    def run(self) -> None:
        """One by one, as `get_sliced_prediction` hands them to a model."""
        sides = {"slice_height": self.side, "slice_width": self.side}
        overlaps = {"overlap_height_ratio": OVERLAP, "overlap_width_ratio": OVERLAP}
        found = self._slice(self.frame, **sides, **overlaps)
        self.made = self.torch.stack([self._ready(image) for image in found.images])

    def _ready(self, image: NDArray[np.uint8]) -> Any:
        planes = np.ascontiguousarray(image.transpose(2, 0, 1))
        return self.torch.from_numpy(planes).to(self.device).float() / 255


class OneByOne(Slices):
    """The same without sahi: NumPy's slices, one batch of bytes to the device, normalised there."""

    name = "numpy-slices"

    def run(self) -> None:
        """One copy for all slices, which overlap, so that it is more than the frame."""
        parts = [self.frame[y1:y2, x1:x2] for x1, y1, x2, y2 in places(self.side).tolist()]
        there = self.torch.from_numpy(np.stack(parts)).to(self.device)
        self.made = there.permute(0, 3, 1, 2).float() / 255


KINDS = (OneLaunch, Sahi, OneByOne)


def parts(context: Context) -> Iterator[Part]:
    """One part."""
    side = context.config.pipelines.slice_side
    case = Case(context.study, context.workload.dataset, "slices", len(places(side)))
    yield Part(_measure, (Comparison(case, SLICED, "host", tuple(kind.name for kind in KINDS)),))


def _measure(context: Context, part: Part) -> Iterator[Row]:
    side = context.config.pipelines.slice_side
    (frame,) = cut(context.workload.frame, np.array([FRAME]), context.seed)
    makers = {kind.name: partial(kind, frame, side, context.device) for kind in KINDS}
    steps, missing = made_of(part, context, makers)
    right = np.stack([frame[y1:y2, x1:x2].transpose(2, 0, 1) for x1, y1, x2, y2 in places(side).tolist()])
    right = thinned(right) / np.float32(255)
    yield from compared(context, part.comparisons[0], steps, missing, lambda step: right)
