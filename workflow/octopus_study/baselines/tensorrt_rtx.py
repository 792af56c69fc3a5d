"""TensorRT for RTX, a plugin of ONNX Runtime, on the two graphs that ONNX Runtime and TensorRT execute too.

Unlike TensorRT its libraries come from the package index. It takes boards for people's desks alone (compute capability
8.6, 8.9, and 12.0 on); elsewhere it offers no device, and what it says then is the reason.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.baselines.graphs import GridSampleGraph, PaddedGraph
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import blocking_stream, require_gpu
from octopus_study.baselines.onnx_runtime import need_onnxruntime
from octopus_study.baselines.onnxruntime_graphs import OnnxRuntimeSession

NAME = "TensorRT for RTX"
LONGEST = 300  # characters of what the library says that a reason quotes
VERBOSE, WARNING = 0, 2


class TensorRtRtxSession(OnnxRuntimeSession):
    """A session of the plugin, on memory that is bound once."""

    def _providers(self, options: Any, on_gpu: bool) -> None:
        plugin, devices = rtx_devices()
        self._name, self._stream = plugin, blocking_stream()
        handle = str(int(self._stream.handle))
        settings = {"has_user_compute_stream": "1", "user_compute_stream": handle}
        options.add_provider_for_devices(list(devices), settings)

    def _require_provider(self, found: Sequence[str], on_gpu: bool) -> None:
        if self._name not in found:
            raise Unavailable(f"{NAME} could not take the model; the session has {', '.join(found)}")


@cache
def rtx_devices() -> tuple[str, tuple[Any, ...]]:
    """Register the plugin, once in a process; its name, and the devices that it offers.

    Raises
    ------
    Unavailable
        It is missing, can't be loaded, or offers no device.
    """
    ort = need_onnxruntime()
    plugin = need("onnxruntime_ep_nv_tensorrt_rtx", NAME, "pip install onnxruntime-ep-nv-tensorrt-rtx-cu13")
    if not hasattr(ort, "register_execution_provider_library"):
        raise Unavailable(f"ONNX Runtime {ort.__version__} knows no plugins; {NAME} needs 1.24 or newer")
    name = plugin.get_ep_name()

    def offered() -> tuple[Any, ...]:
        ort.register_execution_provider_library(name, plugin.get_library_path())
        return tuple(device for device in ort.get_ep_devices() if device.ep_name == name)

    ort.set_default_logger_severity(VERBOSE)
    try:
        devices, said = _heard(offered)
    except Exception as error:
        raise Unavailable(f"{NAME} can't be loaded: {error}") from error
    finally:
        ort.set_default_logger_severity(WARNING)
    if not devices:
        raise Unavailable(f"{NAME} offers no device here{_quoted(said)}")
    return name, devices


def _heard(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a call returns, and what C++ code wrote to the error output meanwhile."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            result = call()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return result, file.read().decode(errors="replace")


def _quoted(said: str) -> str:
    """The lines on GPUs that are not taken, without times and places, each once."""
    lines = [line.rpartition("] ")[2].strip() for line in said.splitlines() if "does not support GPU" in line]
    chosen = dict.fromkeys(lines)
    return f"; it says: {'; '.join(chosen)[:LONGEST]}" if chosen else ""


class TensorRtRtxPadded(PaddedGraph):
    """The published comparison's graph."""

    name = "tensorrt-rtx-padded"
    runtime = TensorRtRtxSession

    def __init__(self, job: CropJob) -> None:
        require_gpu(job, NAME)
        rtx_devices()  # before a model is written
        super().__init__(job)


class TensorRtRtxGridSample(GridSampleGraph):
    """The graph with the same answer."""

    name = "tensorrt-rtx-gridsample"
    runtime = TensorRtRtxSession

    def __init__(self, job: CropJob) -> None:
        require_gpu(job, NAME)
        rtx_devices()
        super().__init__(job)
