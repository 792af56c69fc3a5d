"""Torch itself: tensors on the host, calls inside torch.compile, and tensors that hold no values."""

from __future__ import annotations

import numpy as np
import pytest

import octopus
from octopus import CropPlan, InputError, RaggedBatch, crop_resize, keep_tiles, ops

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(5)
FRAME = RNG.integers(0, 256, (40, 60, 3), np.uint8)
BOXES = np.array([[1, 2, 30, 30], [0, 0, 9.5, 9]], np.float32)
OPTIONS = {"mean": 100.0, "std": 50.0, "device": "cpu"}
RIGHT = crop_resize(FRAME, BOXES, (8, 8), **OPTIONS)
BATCH = RaggedBatch.from_arrays(np.arange(6, dtype=np.float32), [[2, 2], [1, 2]])


def cropped(boxes, tiles):
    return crop_resize(torch.from_numpy(FRAME), boxes + 1, (8, 8), **OPTIONS) + 1


def planned(boxes, tiles):
    return PLAN.run(torch.from_numpy(FRAME), boxes + 1) + 1


def in_a_new_plan(boxes, tiles):
    plan = CropPlan(torch.from_numpy(FRAME), 2, (8, 8), **OPTIONS)
    return plan.run(torch.from_numpy(FRAME), boxes + 1) + 1


def of_tiles(boxes, tiles):
    _, means = keep_tiles(torch.from_numpy(FRAME), tiles + 1, 0.5, device="cpu")
    return torch.as_tensor(means) + 1


def multiplied(boxes, tiles):
    done = ops.multiply(BATCH, [2.0, 3.0], device="cpu")
    return torch.as_tensor(done.values) + boxes.sum()


PLAN = CropPlan(torch.from_numpy(FRAME), 2, (8, 8), **OPTIONS)


@pytest.mark.parametrize(
    "function", [cropped, planned, in_a_new_plan, of_tiles, multiplied], ids=lambda f: f.__name__
)
@pytest.mark.filterwarnings("ignore")
def test_a_call_inside_a_compiled_function_is_the_same_call(function):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    for count in (2, 1, 2):
        boxes, tiles = torch.from_numpy(BOXES)[:count], torch.tensor([[0, 0, 9, 9], [5, 5, 8, 9]])[:count]
        assert torch.equal(compiled(boxes, tiles), function(boxes, tiles))


@pytest.mark.filterwarnings("ignore")
def test_a_whole_graph_is_refused_by_a_reason():
    torch._dynamo.reset()
    whole = torch.compile(cropped, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="Octopus works on memory"):
        whole(torch.from_numpy(BOXES), None)


def test_errors_pass_through_a_compiled_function():
    torch._dynamo.reset()
    compiled = torch.compile(lambda boxes: crop_resize(FRAME, boxes[:, :3], device="cpu"), backend="eager")
    with pytest.raises(InputError, match=r"shape \(N, 4\)"):
        compiled(torch.from_numpy(BOXES))


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(2, 4)


def test_a_mapped_tensor_is_told():
    with pytest.raises(InputError, match=r"boxes is a .*vmap.*call Octopus outside"):
        torch.func.vmap(lambda boxes: crop_resize(FRAME, boxes, (8, 8), device="cpu"))(torch.zeros(3, 2, 4))


@pytest.mark.parametrize(
    ("boxes", "said"),
    [
        (lambda: torch.from_numpy(BOXES).requires_grad_(), r"requires grad.*boxes\.detach\(\)"),
        (lambda: torch.from_numpy(BOXES).to_sparse(), r"layout torch.sparse_coo.*to_dense\(\)"),
        (lambda: torch.zeros(2, 4, device="meta"), "lies on meta"),
        (lambda: torch.quantize_per_tensor(torch.zeros(2, 4), 1.0, 0, torch.qint8), "dtype qint8"),
        (fake, "call Octopus outside of them"),
    ],
    ids=["grad", "sparse", "meta", "quantised", "fake"],
)
def test_tensors_without_values_of_their_own_are_refused(boxes, said):
    with pytest.raises(InputError, match=said):
        crop_resize(FRAME, boxes(), (8, 8), device="cpu")


@pytest.mark.parametrize("name", ["mean", "std", "scale"])
def test_a_mean_that_requires_grad_is_to_be_detached(name):
    with pytest.raises(InputError, match=rf"{name} requires grad.*{name}\.detach\(\)"):
        crop_resize(FRAME, BOXES, **{name: torch.ones(3, requires_grad=True)}, device="cpu")


@pytest.mark.parametrize(
    "options",
    [
        {"mean": torch.full((3,), 100.0), "std": torch.full((3, 1, 1), 50.0)},
        {"mean": torch.tensor(100), "std": torch.full((1, 3, 1, 1), 50.0, dtype=torch.float64)},
        {"dtype": torch.float32, "device": torch.device("cpu")},
        {"size": torch.Size([8, 8]), "scale": torch.tensor(2.0), "mean": 50, "std": torch.tensor(25.0)},
    ],
    ids=["three", "scalar", "names", "size"],
)
def test_torchs_own_kinds_of_options(options):
    for _ in range(2):
        found = crop_resize(FRAME, BOXES, **{"size": (8, 8)} | OPTIONS | options)
        assert np.allclose(found, RIGHT, atol=1e-5)


def test_a_tensor_of_means_may_change_between_calls():
    mean = torch.zeros(3)
    first = crop_resize(FRAME, BOXES, 8, mean=mean, device="cpu")
    mean += 5
    assert np.allclose(crop_resize(FRAME, BOXES, 8, mean=mean, device="cpu"), first - 5, atol=1e-4)


@pytest.mark.parametrize("layout", ["XYXY", "XYWH", "CXCYWH"])
def test_bounding_boxes_are_read_by_their_format(layout):
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    x1, y1, x2, y2 = torch.from_numpy(BOXES).unbind(1)
    values = {
        "XYXY": [x1, y1, x2, y2],
        "XYWH": [x1, y1, x2 - x1, y2 - y1],
        "CXCYWH": [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1],
    }[layout]
    boxes = tv_tensors.BoundingBoxes(torch.stack(values, 1), format=layout, canvas_size=(40, 60))
    assert np.array_equal(crop_resize(FRAME, boxes, (8, 8), **OPTIONS), RIGHT)
    assert np.array_equal(PLAN.run(torch.from_numpy(FRAME), boxes).numpy(), RIGHT)


def test_rotated_bounding_boxes_are_refused():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    boxes = tv_tensors.BoundingBoxes(torch.zeros(1, 5), format="XYWHR", canvas_size=(40, 60))
    with pytest.raises(InputError, match="format XYWHR"):
        crop_resize(FRAME, boxes, device="cpu")


def test_no_boxes_are_an_empty_tensor():
    assert octopus.crop_resize(FRAME, torch.empty(0), 8, device="cpu").shape == (0, 3, 8, 8)
