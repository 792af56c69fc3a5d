"""The two graphs, the same bytes each time, valid, and right at every shape; and TensorRT's methods on them, line by
line.

TensorRT is on no machine of the tests, so that what it is asked is recorded here, executed by ONNX Runtime on the
memory that was bound, and compared with the right answer. That it has what is called, the type stubs say (`make lint`).
"""

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import onnx
import onnxruntime
import pytest
from crop_methods import BOXES, FRAME, MEAN, SIZE, STD, cropped, job, levels, padded, padded_items

from octopus_study.baselines import registry, tensorrt_engine
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.graphs import tensor
from octopus_study.baselines.onnx_models import grid_sample_model, padded_model
from octopus_study.baselines.onnx_runtime import OnnxRuntimeSession
from octopus_study.names import arena_methods
from octopus_study.reference import crops as reference


def execute(model, **inputs):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_grid_sample_at_any_number_of_boxes_and_frame(count):
    frame, boxes = FRAME[:, : 300 - count], BOXES[-count:].clip(max=300 - count)
    right = reference.crop_resize(frame, boxes, SIZE, np.array(MEAN), np.array(STD))
    found = execute(grid_sample_model(SIZE, MEAN, STD), frame=frame, boxes=boxes.astype(np.float32))
    assert levels(found, right) < 0.02


@pytest.mark.parametrize("chosen", [[4], [0, 3], [0, 1, 2, 3, 4]])
def test_padded_at_any_shape(chosen):
    boxes = BOXES[chosen]
    found = execute(padded_model(SIZE, MEAN, STD), padded=padded_items(boxes))
    assert levels(found, padded(boxes)) < 0.02


def test_a_session_reads_and_writes_the_memory_it_is_bound_to():
    model = grid_sample_model(SIZE, MEAN, STD)
    boxes, out = BOXES[:2].astype(np.float32), np.full((2, 3, *SIZE), np.nan, np.float32)
    session = OnnxRuntimeSession(model, [tensor("frame", FRAME), tensor("boxes", boxes)], tensor("crops", out), False)
    session.execute()
    boxes[...] = BOXES[3:]
    session.execute()
    right = reference.crop_resize(FRAME, BOXES[3:], SIZE, np.array(MEAN), np.array(STD))
    assert levels(out, right) < 0.02


@pytest.mark.parametrize("write", [padded_model, grid_sample_model])
def test_with_known_shapes_no_node_computes_shapes(write, tmp_path):
    # On a GPU such nodes would be left for the CPU, which the session refuses.
    options, path = onnxruntime.SessionOptions(), tmp_path / "folded.onnx"
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    for name, side in {"n": 5, "height": 200, "width": 300}.items():
        options.add_free_dimension_override_by_name(name, side)
    onnxruntime.InferenceSession(write(SIZE, MEAN, STD), options, providers=["CPUExecutionProvider"])
    kinds = {node.op_type for node in onnx.load(path).graph.node}
    assert "Cast" in kinds
    assert not kinds & {"Shape", "Slice", "Size"}


NAMES = [name for name in arena_methods() if name.startswith("tensorrt")]


class Context:
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
        memory = (ctypes.c_ubyte * (int(np.prod(shape)) * dtype.itemsize)).from_address(self.addresses[name])
        return np.ctypeslib.as_array(memory).view(dtype).reshape(shape)


@pytest.fixture
def trt(monkeypatch):
    """A module `tensorrt` whose plan is the model itself, and a job of the host that passes for one of a GPU."""
    facts = {"__file__": "tensorrt/__init__.py", "__version__": "10", "__spec__": object()}
    module = MagicMock(spec=ModuleType("tensorrt"), **facts)
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
