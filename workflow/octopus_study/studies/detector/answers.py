"""Whether two results of one detector are the same: a partner for every detection, within what rounding can do.

The inputs of two methods differ by rounding, and a network passes that on to scores and boxes. Where a score then falls
on the other side of the score threshold, or an overlap on the other side of the one that removes a box, a detection
comes or goes although nothing has changed by more than the tolerance. Such detections lie on an edge; they are counted
by themselves and make no frame different.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.studies.detector.model import Detections

# People read boxes in whole pixels and scores in percent. What rounding does is far less (see the rows of the largest
# differences), and other pixels under a box change more.
BOX_TOLERANCE = 1.0  # pixels of the frame
SCORE_TOLERANCE = 0.005
IOU_TOLERANCE = 0.01  # a box of 200 px whose sides move by a pixel changes an overlap by about as much


class Thresholds(NamedTuple):
    """Where a detector decides."""

    score: float
    iou: float


class Difference(NamedTuple):
    """How two results for one frame depart from each other."""

    unmatched: int  # detections of either without a partner in the other, but for those on an edge
    # Detections without a partner since one of the detector's thresholds lies between the two results
    on_edge: int
    partners: int  # pairs of detections that are the same


def difference(result: Detections, expected: Detections, thresholds: Thresholds) -> Difference:
    """Compare two results for one frame; which order they come in does not matter."""
    partners = _partners(result, expected)
    taken = [{pair[side] for pair in partners} for side in (0, 1)]
    alone = [
        [index for index in range(len(one.boxes)) if index not in used]
        for one, used in zip((result, expected), taken, strict=True)
    ]
    left, on_edge = sum(map(len, alone)), 0
    if left:
        on_edge = _count_on_edge(result, expected, alone[0], alone[1], thresholds)
    return Difference(left - on_edge, on_edge, len(partners))


def _partners(result: Detections, expected: Detections) -> list[tuple[int, int]]:
    """Pairs of detections that are the same, the nearest first; each detection is in one pair at most."""
    if not len(result.boxes) or not len(expected.boxes):
        return []
    box = np.abs(result.boxes[:, None] - expected.boxes[None]).max(axis=2)
    score = np.abs(result.scores[:, None] - expected.scores[None])
    same = (box <= BOX_TOLERANCE) & (score <= SCORE_TOLERANCE)
    same &= result.labels[:, None] == expected.labels[None]
    here, there = np.nonzero(same)
    nearest = np.argsort(box[here, there], kind="stable")
    pairs: list[tuple[int, int]] = []
    used_here: set[int] = set()
    used_there: set[int] = set()
    for one, other in zip(here[nearest].tolist(), there[nearest].tolist(), strict=True):
        if one not in used_here and other not in used_there:
            pairs.append((one, other))
            used_here.add(one)
            used_there.add(other)
    return pairs


def _count_on_edge(
    result: Detections, expected: Detections, here: list[int], there: list[int], thresholds: Thresholds
) -> int:
    """How many of the detections without a partner a threshold explains, be it through another one of them."""
    count = len(result.boxes)
    boxes = np.concatenate([result.boxes, expected.boxes]).astype(np.float64)
    scores = np.concatenate([result.scores, expected.scores])
    labels = np.concatenate([result.labels, expected.labels])
    same_label = (labels[:, None] == labels[None]) & ~np.eye(len(boxes), dtype=bool)
    overlap = np.where(same_label, overlaps(boxes, boxes), -1.0)
    alone = np.array(here + [count + index for index in there])
    undecided = np.abs(scores - thresholds.score) <= SCORE_TOLERANCE
    undecided |= (np.abs(overlap - thresholds.iou) <= IOU_TOLERANCE).any(axis=1)
    edge = np.zeros(len(boxes), bool)
    edge[alone] = undecided[alone]
    # A box that comes or goes makes one go or come that it overlaps, in the other result.
    linked = overlap[np.ix_(alone, alone)] > thresholds.iou - IOU_TOLERANCE
    linked &= (alone[:, None] < count) != (alone[None] < count)
    for _ in range(len(alone)):
        grown = edge[alone] | (linked & edge[alone][None]).any(axis=1)
        if (grown == edge[alone]).all():
            break
        edge[alone] = grown
    return int(edge.sum())


def overlaps(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shared area over common area of every box (N, 4) with every other (M, 4); 0 where both are empty."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (one, other)]
    common = areas[0][:, None] + areas[1][None] - shared
    return np.divide(shared, common, out=np.zeros_like(shared), where=common > 0)
