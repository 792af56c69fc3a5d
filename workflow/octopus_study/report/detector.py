"""What figures and tables of the detector share."""

from __future__ import annotations

from octopus_study.report.derive.detector import RANDOM
from octopus_study.report.labels import human
from octopus_study.report.labels_edge import DETECTOR_MODELS
from octopus_study.report.numbers import Number, Numbers

STUDY = "detector"
NO_RUN = "No run of the study detector is at hand: older results lack it."
NO_TIMES = "No run of the study detector that is shown timed a frame"
METHODS = ("octopus", "opencv", "opencv-uint8")
STAGES = ("preprocess", "inference", "postprocess")
PUBLISHED = {"octopus": "gpu-preprocessing", "opencv-uint8": "cpu-preprocessing"}


def prefix(numbers: Numbers, scope: str) -> str:
    """Return the start of the ids of a machine's model and frames; empty without a run."""
    frames, model = (numbers.text(f"{scope}.{STUDY}.{name}") for name in ("frames", "model"))
    return f"{scope}.{STUDY}.{model}.n{frames}" if frames else ""


def time_of(numbers: Numbers, scope: str, method: str, quantity: str) -> Number | None:
    """Return the median of a stage over the frames."""
    return numbers.get(f"{prefix(numbers, scope)}.{method}.{quantity}.host")


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that ran the detector."""
    return [scope for scope in numbers.scopes(STUDY) if time_of(numbers, scope, METHODS[0], "end_to_end")]


def without(numbers: Numbers) -> dict[str, str]:
    """Return the machines that have the study and no time, with what their rows say."""
    found = {}
    for scope in numbers.scopes(STUDY):
        if not time_of(numbers, scope, METHODS[0], "end_to_end"):
            found[scope] = numbers.text(f"{prefix(numbers, scope)}.{METHODS[0]}.end_to_end.host")
    return found


def model_name(numbers: Numbers, scope: str) -> str:
    """Return the model, and that its weights are random where they are."""
    model = numbers.text(f"{scope}.{STUDY}.model")
    name = human(DETECTOR_MODELS, model.removesuffix(RANDOM))
    return f"{name}, random weights" if model.endswith(RANDOM) else name
