"""What figures and tables of the drone's video share: clips, methods, and the frames of a method."""

from __future__ import annotations

import numpy as np

from octopus_study.report.derive.drone import clip_seconds
from octopus_study.report.numbers import Numbers

STUDY = "drone"
NO_RUN = "No run of the study drone is at hand: older results lack it."
NO_TIMES = "No run of the study drone that is shown timed a frame."
METHODS = ("octopus", "octopus-graph", "n-launches", "n-launches-published", "opencv")
LAYERS = {"host": "Back to back", "paced": "At the rate of the video"}
# The published names of the same ways.
PUBLISHED = {"octopus": "one-launch", "n-launches-published": "n-launches", "opencv": "opencv"}


def clips(numbers: Numbers, scope: str) -> list[str]:
    """Return the clips that a machine timed, the longest last."""
    found = numbers.matching(rf"{scope}\.{STUDY}\.frames\.(clip-\d+s)\.host\.[\w-]+\.mean")
    return sorted({match[1] for match, _ in found}, key=clip_seconds)


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that timed some clip."""
    return [scope for scope in numbers.scopes(STUDY) if clips(numbers, scope)]


def key(scope: str, clip: str, method: str, name: str, layer: str = "host") -> str:
    """Return the id of what is known of a method's frames."""
    return f"{scope}.{STUDY}.frames.{clip}.{layer}.{method}.{name}"


def methods(numbers: Numbers, scope: str, clip: str, layer: str = "host") -> list[str]:
    """Return the methods with times of a clip's frames."""
    return [name for name in METHODS if numbers.get(key(scope, clip, name, "mean", layer))]


def frames(numbers: Numbers, scope: str, clip: str, method: str, layer: str = "host") -> np.ndarray:
    """Return the milliseconds of each frame, in the order of the clip."""
    return np.array(numbers.text(key(scope, clip, method, "series", layer)).split(), dtype=float)


def start(numbers: Numbers, scope: str, workload: str) -> str:
    """Return the start of a workload's ids, with its number of detections; empty where there is none."""
    found = numbers.matching(rf"({scope}\.{STUDY}\.{workload}\.n\d+)\.[\w-]+\.(?:frame|clip)_time\.\w+")
    return found[0][0][1] if found else ""


def differs(numbers: Numbers, scope: str, clip: str, method: str) -> bool:
    """Say whether a method's crops differ from the reference."""
    key = f"{start(numbers, scope, clip)}.{method}.frame_time.host"
    return key in numbers and numbers[key].note.startswith("different")


def missing(numbers: Numbers, scope: str, clip: str) -> dict[str, str]:
    """Return the methods without times of a clip, with what their rows say."""
    prefix = start(numbers, scope, clip)
    texts = {name: numbers.text(f"{prefix}.{name}.frame_time.host") for name in METHODS}
    return {name: text for name, text in texts.items() if text.startswith("unavailable")}
