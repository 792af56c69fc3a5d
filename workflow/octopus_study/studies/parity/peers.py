"""Who is compared with Octopus in the parity table, under which settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob
from octopus_study.peers.registry import make
from octopus_study.studies.parity import inputs


def own_inputs(job: CropJob) -> tuple[Any, Any]:
    """The job's frame and boxes."""
    return job.frame, job.boxes


class Setting(NamedTuple):
    """One way to crop and resize: Octopus' options for it, and the peers that offer the same.

    A peer is a function ``module:name`` of this folder, or ``arena:name``, a method of the arena. `inputs` are the
    frame and the boxes of a job that Octopus is given, where they aren't the job's own.
    """

    options: dict[str, Any]
    peers: dict[str, str]
    inputs: Callable[[CropJob], tuple[Any, Any]] = own_inputs


SETTINGS = {
    "float32-box": Setting(
        {},
        {
            "opencv": "opencv:exact",
            "torch": "torch:interpolate",
            "cvcuda": "arena:cvcuda",
            "dali": "arena:dali-slice",
        },
    ),
    "float32-image": Setting({"edge": "image"}, {"torchvision": "arena:roi-align", "dali": "arena:dali"}),
    "uint8-box": Setting({"dtype": "uint8"}, {"opencv": "opencv:fixed_point", "cvcuda": "cvcuda:rounded"}),
    "antialias": Setting(
        {"antialias": True},
        {
            "pil": "pil:exact",
            "torch": "torch:interpolate_antialias",
            "torchvision": "torch:torchvision_antialias",
        },
    ),
    "antialias-uint8": Setting({"antialias": True, "dtype": "uint8"}, {"pil": "pil:rounded"}),
    "letterbox": Setting({"letterbox": True}, {"opencv": "opencv:letterbox"}),
    "bfloat16": Setting({"dtype": "bfloat16"}, {"torch": "torch:interpolate_bfloat16"}),
    "nearest": Setting(
        {"filter": "nearest"},
        {"opencv": "opencv:nearest", "torch": "torch:interpolate_nearest", "pil": "pil:nearest"},
    ),
    "bicubic": Setting(
        {"filter": "bicubic"}, {"opencv": "opencv:bicubic", "torch": "torch:interpolate_bicubic"}
    ),
    "affine": Setting({}, {"opencv": "opencv:warped", "float64": "definitions:warped"}, inputs.affine),
    "nv12": Setting(
        {},
        {"opencv": "opencv:of_nv12", "ffmpeg": "ffmpeg:of_nv12", "float64": "definitions:of_nv12"},
        inputs.nv12,
    ),
    "p010": Setting({}, {"float64": "definitions:of_p010"}, inputs.p010),
}


def crops_of(peer: str, job: CropJob) -> NDArray[np.float32]:
    """A peer's crops in levels, (N, height, width, C).

    Raises
    ------
    Unavailable, ImportError
        It can't run here.
    """
    module, _, name = peer.partition(":")
    if module == "arena":
        method = make(name, job)
        method.run()
        return np.asarray(method.result(), np.float32).transpose(0, 2, 3, 1)
    function: Callable[[CropJob], NDArray[np.float32]] = getattr(
        import_module(f"{__package__}.{module}"), name
    )
    return function(job)
