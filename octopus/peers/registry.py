"""The arena's opponents by name, in the order of the report; each is imported when it is made."""

from __future__ import annotations

from importlib import import_module

from octopus.errors import InputError
from octopus.peers.job import CropJob
from octopus.peers.rival import Rival

ARENA: tuple[tuple[str, str], ...] = (
    ("roi-align", "octopus.peers.roi_align:RoiAlign"),
    ("grid-sample", "octopus.peers.grid_sample:GridSample"),
    ("cvcuda", "octopus.peers.cvcuda:CvCuda"),
    ("cvcuda-views", "octopus.peers.cvcuda:CvCudaViews"),
    ("cvcuda-scalar", "octopus.peers.cvcuda:CvCudaScalar"),
    ("dali", "octopus.peers.dali:Dali"),
    ("dali-slice", "octopus.peers.dali:DaliSlice"),
    ("padded-torch", "octopus.peers.padded_torch:PaddedTorch"),
    ("padded-onnxruntime", "octopus.peers.onnxruntime_graphs:PaddedOnnxRuntime"),
    ("onnxruntime-gridsample", "octopus.peers.onnxruntime_graphs:OnnxRuntimeGridSample"),
    ("tensorrt-padded", "octopus.peers.tensorrt_graphs:TensorRtPadded"),
    ("tensorrt-padded-fp16", "octopus.peers.tensorrt_graphs:TensorRtPaddedHalf"),
    ("tensorrt-gridsample", "octopus.peers.tensorrt_graphs:TensorRtGridSample"),
)


def make(name: str, job: CropJob) -> Rival:
    """The opponent of that name.

    Raises
    ------
    InputError
        Nobody has that name.
    Unavailable
        It can't run here; the message says why.
    """
    places = dict(ARENA)
    if name not in places:
        raise InputError(f"there is no opponent {name!r}; there are {', '.join(places)}")
    module, _, kind = places[name].partition(":")
    return getattr(import_module(module), kind)(job)
