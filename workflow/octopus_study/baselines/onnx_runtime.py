"""ONNX Runtime: the two graphs on its CPU provider, or on its CUDA provider where that is installed."""

import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.baselines.graphs import GridSampleGraph, PaddedGraph, Tensor
from octopus_study.baselines.method import blocking_stream
from octopus_study.names import LIBRARIES

MODULE, NAME = "onnxruntime", "ONNX Runtime"
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
INSTALL = "pip install -e './workflow[baselines]'"
ERRORS_ONLY = 3


def builds() -> dict[str, str]:
    """The builds in the folder that is imported, by name, with their versions."""
    spec = find_spec(MODULE)
    places = [str(Path(place).parent) for place in (spec and spec.submodule_search_locations) or ()]
    known = next(library.packages for library in LIBRARIES if library.name == NAME)
    found = ((name, one.version) for name in known for one in distributions(name=name, path=places))
    return dict(found)


def imported() -> dict[str, Any]:
    """What this process runs, for the provenance: the folder's name, version, providers and builds; empty if it was not
    imported."""
    module = sys.modules.get(MODULE)
    if module is None or not hasattr(module, "get_available_providers"):
        return {}
    facts = {"version": module.__version__, "providers": module.get_available_providers(), "builds": builds()}
    return {MODULE: facts}


def load(on_gpu: bool) -> Any:
    """ONNX Runtime, able to work on the CPU or on the GPU. It is `Unavailable` without its CUDA provider, or where two
    builds are installed: they share a folder, and what is imported is a mixture."""
    if len(found := builds()) > 1:
        both = " and ".join(f"{name} {number}" for name, number in found.items())
        raise Unavailable(f"{both} are both installed into one folder: pip uninstall {' '.join(found)}, then one")
    module = need(MODULE, NAME, INSTALL)
    if on_gpu and CUDA not in module.get_available_providers():
        raise Unavailable(
            f"this ONNX Runtime ({module.__version__}) has no CUDA provider; install onnxruntime-gpu instead"
        )
    if on_gpu and hasattr(module, "preload_dlls"):
        module.preload_dlls()
    return module


def check_provider(session: Any, on_gpu: bool) -> None:
    """Raise `Unavailable` if a session for the GPU has fallen back to another provider."""
    if on_gpu and CUDA not in session.get_providers():
        raise Unavailable("ONNX Runtime's CUDA provider can't be loaded; it needs CUDA's libraries of its version")


class OnnxRuntimeSession:
    """A session on memory that is bound once, so that a run copies nothing. All dimensions are fixed when the session
    is made: shapes then are constants, which it folds, and on a GPU no node is left for the host. If one were, the
    session would refuse instead of computing it there."""

    def __init__(self, model: bytes, inputs: Sequence[Tensor], output: Tensor, on_gpu: bool) -> None:
        self._ort = load(on_gpu)
        options = self._options(on_gpu)
        self._fix_dimensions(options, model, {item.name: item.shape for item in inputs})
        self._stream: Any = None
        providers = self._cuda() if on_gpu else [CPU]
        self._session = self._ort.InferenceSession(model, options, providers=providers)
        check_provider(self._session, on_gpu)
        self._bind(inputs, output, on_gpu)

    def _bind(self, inputs: Sequence[Tensor], output: Tensor, on_gpu: bool) -> None:
        self._binding = self._session.io_binding()
        place = "cuda" if on_gpu else "cpu"
        for item in inputs:
            self._binding.bind_input(item.name, place, 0, item.dtype.type, item.shape, item.pointer)
        self._binding.bind_output(output.name, place, 0, output.dtype.type, output.shape, output.pointer)
        self._memory = [*inputs, output]
        self._run_options = self._ort.RunOptions()
        if on_gpu:  # the caller waits where that is needed
            self._run_options.add_run_config_entry("disable_synchronize_execution_providers", "1")

    def _cuda(self) -> list[Any]:
        self._stream = blocking_stream()
        settings = {
            "user_compute_stream": str(int(self._stream.handle)),
            "arena_extend_strategy": "kSameAsRequested",
            "use_tf32": "0",
        }
        return [(CUDA, settings)]

    def _options(self, on_gpu: bool) -> Any:
        options = self._ort.SessionOptions()
        options.log_severity_level = ERRORS_ONLY
        if on_gpu:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        else:
            from octopus.backends.cpu import get_num_threads

            options.intra_op_num_threads = get_num_threads()
            # Its waiting threads would go on turning, and take the cores from the method that is timed next.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return options

    def _fix_dimensions(self, options: Any, model: bytes, shapes: dict[str, tuple[int, ...]]) -> None:
        onnx = need("onnx", "onnx", INSTALL)
        for item in onnx.load_from_string(model).graph.input:
            for dimension, side in zip(item.type.tensor_type.shape.dim, shapes[item.name], strict=True):
                if dimension.dim_param:
                    options.add_free_dimension_override_by_name(dimension.dim_param, side)

    def execute(self) -> None:
        """Run the graph; on a GPU it is queued on a stream that is ordered with the default one."""
        self._session.run_with_iobinding(self._binding, self._run_options)

    def wait(self) -> None:
        """Wait for what was queued; on a CPU it is done already."""
        if self._stream is not None:
            self._stream.sync()


class PaddedOnnxRuntime(PaddedGraph):
    """The published comparison's graph."""

    name = "padded-onnxruntime"
    runtime = OnnxRuntimeSession


class OnnxRuntimeGridSample(GridSampleGraph):
    """The graph with the same answer."""

    name = "onnxruntime-gridsample"
    runtime = OnnxRuntimeSession
