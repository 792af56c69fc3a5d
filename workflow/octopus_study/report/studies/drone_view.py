"""The drone's video: clips, methods and frames, as its tables and its figure find them."""

from __future__ import annotations

import re

from octopus_study.report.frame import Key, Number
from octopus_study.report.tables.cells import DIFFERENT
from octopus_study.report.view import View

METHODS = (
    "octopus", "octopus-graph", "n-launches", "n-launches-published", "opencv", "opencv-table", "opencv-table-threads",
)  # fmt: skip
LAYERS = {"host": "Back to back", "paced": "At the rate of the video"}


def clip_seconds(clip: str) -> int:
    """Return the seconds of a clip by its name; 0 for something else."""
    match = re.fullmatch(r"clip-(\d+)s", clip)
    return int(match[1]) if match else 0


def clips(view: View, layer: str = "host") -> list[str]:
    """Return the clips that a machine timed on a layer, the longest last."""
    timed = {number.workload for number in view.select(quantity="frame_time", layer=layer) if number.known}
    return sorted(timed, key=clip_seconds)


def medians_of(view: View, clip: str, layer: str = "host") -> dict[str, Number]:
    """Return the median frame of each method of a clip, or why it has none."""
    return {
        number.method: number for number in view.select(workload=clip, quantity="frame_time", layer=layer)
    }


def frames_of(key: Key, clip: str = "") -> Key:
    """Return the start of the keys of a method's frames, from that of its median; those of another clip if named."""
    return Key(*key[:2], f"frames.{clip or key.workload}.{key.layer}", method=key.method)


def differs(view: View, key: Key) -> str:
    """Return a mark where a method's crops differ from the reference, from the key of a median."""
    number = view.frame.find(key.but(layer="host"))
    return f" {DIFFERENT}" if number and number.differs else ""
