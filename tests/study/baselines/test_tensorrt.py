"""Both methods of TensorRT, line by line: it is on no machine of the tests, so that what it is asked is recorded here,
executed by ONNX Runtime on the memory that was bound, and compared with the right answer. That TensorRT has what is
called, the type stubs say (`make lint`)."""

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import onnx
import onnxruntime
import pytest
from crop_methods import cropped, job, levels, padded

from octopus_study.baselines import registry, tensorrt_engine
from octopus_study.baselines.availability import Unavailable
from octopus_study.names import arena_methods

NAMES = [name for name in arena_methods() if name.startswith("tensorrt")]


class Context:
    """What an engine is executed by."""

    def __init__(self, model: bytes) -> None:
        self.graph, self.shapes, self.addresses = onnx.load_from_string(model).graph, {}, {}
        self.session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def set_input_shape(self, name, shape):
        self.shapes[name] = shape

    def set_tensor_address(self, name, address):
        self.addresses[name] = address

    def infer_shapes(self):
        return [item.name for item in self.graph.input if item.name not in self.shapes]

    def execute_async_v3(self, stream):
        values = {
            item.name: self._memory(item.name, self.shapes[item.name], item.type.tensor_type.elem_type)
            for item in self.graph.input
        }
        [crops] = self.session.run(None, values)
        self._memory(self.graph.output[0].name, crops.shape, onnx.TensorProto.FLOAT)[...] = crops
        return stream == 7

    def _memory(self, name, shape, kind):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        count = int(np.prod(shape)) * dtype.itemsize
        return (
            np.ctypeslib.as_array((ctypes.c_ubyte * count).from_address(self.addresses[name]))
            .view(dtype)
            .reshape(shape)
        )


@pytest.fixture
def trt(monkeypatch):
    """A module `tensorrt` whose plan is the model itself, and a job of the host that passes for one of a GPU."""
    module = MagicMock(
        spec=ModuleType("tensorrt"), __file__="tensorrt/__init__.py", __version__="10", __spec__=object()
    )
    parser, builder = MagicMock(), MagicMock()
    module.OnnxParser = lambda network, logger: parser
    module.Builder = lambda logger: builder
    parser.parse.side_effect = lambda model: builder.build_serialized_network.configure_mock(return_value=model) or True
    engine = lambda plan: SimpleNamespace(create_execution_context=lambda: Context(plan))  # noqa: E731
    module.Runtime = lambda logger: SimpleNamespace(deserialize_cuda_engine=engine)
    for name in ("Logger", "NetworkDefinitionCreationFlag", "BuilderFlag", "Dims"):
        setattr(module, name, MagicMock())
    module.NetworkDefinitionCreationFlag.STRONGLY_TYPED = 1
    module.parser, module.builder = parser, builder
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    monkeypatch.setattr(tensorrt_engine, "require_gpu", lambda job, product: None)
    monkeypatch.setattr(tensorrt_engine, "blocking_stream", lambda: SimpleNamespace(handle=7))
    return module


@pytest.mark.parametrize("name", NAMES)
def test_where_tensorrt_is_installed_its_methods_run_unasked(name, trt):
    work = job("cpu")
    method = registry.make(name, work)
    method.run()
    assert levels(method.result(), padded() if method.why_different else cropped("box")) < 0.02
    shapes = [call.args for call in trt.builder.create_optimization_profile().set_shape.call_args_list]
    assert shapes and all(least is best is most for _, least, best, most in shapes)
    trt.builder.create_builder_config().clear_flag.assert_called_once_with(trt.BuilderFlag.TF32)


def test_what_tensorrt_refuses_is_a_reason(trt, monkeypatch):
    name = NAMES[0]
    method = registry.make(name, job("cpu"))
    monkeypatch.setattr(Context, "execute_async_v3", lambda self, stream: False)
    with pytest.raises(RuntimeError, match="could not queue"):
        method.kernels()
    monkeypatch.setattr(Context, "infer_shapes", lambda self: ["padded"])
    with pytest.raises(Unavailable, match="can't infer the shapes of padded"):
        registry.make(name, job("cpu"))
    trt.parser.parse.side_effect = lambda model: True
    trt.builder.build_serialized_network.return_value = None
    with pytest.raises(Unavailable, match="can't build the engine"):
        registry.make(name, job("cpu"))
    trt.parser.parse.side_effect = lambda model: False
    trt.parser.num_errors = 1
    trt.parser.get_error = lambda index: SimpleNamespace(desc=lambda: "no such node")
    with pytest.raises(Unavailable, match="can't read the model: no such node"):
        registry.make(name, job("cpu"))
