"""The arena's opponents by name, in the order of the report; each is imported when it is made."""

from __future__ import annotations

from importlib import import_module

from octopus.errors import InputError
from octopus_study.peers.job import CropJob
from octopus_study.peers.rival import Rival

ARENA: tuple[tuple[str, str], ...] = (
    ("roi-align", "octopus_study.peers.roi_align:RoiAlign"),
    ("grid-sample", "octopus_study.peers.grid_sample:GridSample"),
    ("cvcuda", "octopus_study.peers.cvcuda:CvCuda"),
    ("cvcuda-views", "octopus_study.peers.cvcuda:CvCudaViews"),
    ("cvcuda-scalar", "octopus_study.peers.cvcuda:CvCudaScalar"),
    ("dali", "octopus_study.peers.dali:Dali"),
    ("dali-slice", "octopus_study.peers.dali:DaliSlice"),
    ("padded-torch", "octopus_study.peers.padded_torch:PaddedTorch"),
    ("padded-onnxruntime", "octopus_study.peers.onnxruntime_graphs:PaddedOnnxRuntime"),
    ("onnxruntime-gridsample", "octopus_study.peers.onnxruntime_graphs:OnnxRuntimeGridSample"),
    ("tensorrt-padded", "octopus_study.peers.tensorrt_graphs:TensorRtPadded"),
    ("tensorrt-padded-fp16", "octopus_study.peers.tensorrt_graphs:TensorRtPaddedHalf"),
    ("tensorrt-gridsample", "octopus_study.peers.tensorrt_graphs:TensorRtGridSample"),
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
