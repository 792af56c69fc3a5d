"""The two graphs: the same bytes each time, valid, and right at every shape."""

import numpy as np
import onnx
import onnxruntime
import pytest
from crop_methods import BOXES, FRAME, MEAN, SIZE, STD, levels, padded, padded_items

from octopus_study.baselines.graphs import tensor
from octopus_study.baselines.onnx_models import grid_sample_model, padded_model
from octopus_study.baselines.onnx_runtime import OnnxRuntimeSession
from octopus_study.reference import crops as reference

BOTH = pytest.mark.parametrize("write", [padded_model, grid_sample_model])


def execute(model, **inputs):
    """Any shapes, on the CPU."""
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


@BOTH
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
