"""Who is compared with Octopus in the parity table, under which settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob
from octopus_study.peers.registry import make


class Setting(NamedTuple):
    """One way to crop and resize: Octopus' options for it, and the peers that offer the same.

    A peer is a function ``module:name`` of this folder, or ``arena:name``, a method of the arena.
    """

    options: dict[str, Any]
    peers: dict[str, str]


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
