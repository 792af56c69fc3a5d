"""What of the GPU opponents can be seen without a GPU: the views for CV-CUDA, and the steps to a TensorRT engine."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from crop_methods import BOXES, FRAME, MEAN, SIZE, STD

from octopus_study.peers import tensorrt_engine
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.cvcuda import CvCudaScalar, CvCudaViews
from octopus_study.peers.tensorrt_engine import TensorRtEngine
from octopus_study.peers.tensors import tensor


def cvcuda(kind):
    """An opponent without its library, over a frame on the host."""
    made = object.__new__(kind)
    made.cv, made.stream, made.out = MagicMock(), "stream", "out"
    made.cv.as_images = lambda views, form: views
    device_frame = SimpleNamespace(pointer=FRAME.ctypes.data)
    made.frame = FRAME
    made.job = SimpleNamespace(
        frame=FRAME, boxes=BOXES, size=SIZE, mean=MEAN, std=STD, device_frame=device_frame
    )
    return made


class OnTheHost:
    """A view's memory, as NumPy takes it."""

    def __init__(self, view):
        interface = dict(view.__cuda_array_interface__)
        interface.pop("stream")
        self.__array_interface__ = interface


def test_views_show_the_pixels_of_their_boxes():
    by_hand, documented = cvcuda(CvCudaViews), cvcuda(CvCudaScalar)
    by_hand.prepare()
    documented.prepare()
    for view, part, (x1, y1, x2, y2) in zip(by_hand._batch, documented._batch, BOXES, strict=True):
        assert np.array_equal(np.asarray(OnTheHost(view)), FRAME[y1:y2, x1:x2])
        assert np.array_equal(part, FRAME[y1:y2, x1:x2])


def test_one_scale_and_offset_are_those_of_the_mean_channel():
    made = cvcuda(CvCudaScalar)
    made.prepare()
    made.kernels()
    arguments = made.cv.resize_crop_convert_reformat_into.call_args
    scale, offset = arguments.kwargs["scale"], arguments.kwargs["offset"]
    assert np.mean(MEAN) * scale + offset == pytest.approx(0)
    assert scale == pytest.approx(1 / np.mean(STD))
    assert arguments.args[2] == (SIZE[1], SIZE[0])
    assert arguments.kwargs["srcCast"] is False
    made.cv.normalize_into.assert_not_called()


@pytest.fixture
def trt(monkeypatch):
    """A TensorRT that takes everything."""
    module = MagicMock(__file__="tensorrt.py", __version__="10.13", __spec__=MagicMock())
    context = (
        module.Runtime.return_value.deserialize_cuda_engine.return_value.create_execution_context.return_value
    )
    context.infer_shapes.return_value = []
    monkeypatch.setitem(__import__("sys").modules, "tensorrt", module)
    monkeypatch.setattr(tensorrt_engine, "blocking_stream", lambda: SimpleNamespace(handle=1234))
    module.context = context
    return module


@pytest.fixture
def engine(tmp_path):
    """Makes an engine for a frame, boxes and crops on the host, whose addresses are as good as any."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"model")
    tensors = [
        tensor(name, np.zeros(shape, np.float32)) for name, shape in (("boxes", (5, 4)), ("crops", (5, 3)))
    ]
    return tensors, lambda: TensorRtEngine(path, tensors[:1], tensors[1], True)


def test_an_engine_knows_every_address_and_shape(trt, engine):
    (boxes, crops), make = engine
    made = make()
    profile = trt.Builder.return_value.create_optimization_profile.return_value
    shape = trt.Dims.return_value
    profile.set_shape.assert_called_once_with("boxes", shape, shape, shape)
    trt.context.set_input_shape.assert_called_once_with("boxes", (5, 4))
    addresses = [call.args for call in trt.context.set_tensor_address.call_args_list]
    assert addresses == [("boxes", boxes.pointer), ("crops", crops.pointer)]
    made.execute()
    trt.context.execute_async_v3.assert_called_once_with(1234)


def test_an_engine_that_is_not_queued_is_an_error(trt, engine):
    made = engine[1]()
    trt.context.execute_async_v3.return_value = False
    with pytest.raises(RuntimeError, match="could not queue the engine"):
        made.execute()


def test_a_model_that_tensorrt_refuses_is_a_reason(trt, engine):
    parser = trt.OnnxParser.return_value
    parser.parse.return_value, parser.num_errors = False, 1
    parser.get_error.return_value.desc.return_value = "no such operator"
    with pytest.raises(Unavailable, match=r"TensorRT 10.13 can't read the model: no such operator"):
        engine[1]()


def test_an_engine_that_is_not_built_is_a_reason(trt, engine):
    trt.Builder.return_value.build_serialized_network.return_value = None
    with pytest.raises(Unavailable, match="can't build the engine"):
        engine[1]()


def test_shapes_that_stay_open_are_a_reason(trt, engine):
    trt.context.infer_shapes.return_value = ["boxes"]
    with pytest.raises(Unavailable, match="can't infer the shapes of boxes"):
        engine[1]()
