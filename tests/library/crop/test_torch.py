"""Torch itself: tensors on the host, calls inside torch.compile, and tensors that hold no values."""

import warnings
from functools import partial

import numpy as np
import pytest

import octopus
from octopus import CropPlan, InputError, RaggedBatch, TilePlan, blockmap, crop_resize, keep_tiles, map_back, ops

torch = pytest.importorskip("torch")
FakeTensorMode = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode

RNG = np.random.default_rng(5)
FRAME = RNG.integers(0, 256, (40, 60, 3), np.uint8)
BOXES = np.array([[1, 2, 30, 30], [0, 0, 9.5, 9]], np.float32)
OPTIONS = {"mean": 100.0, "std": 50.0, "device": "cpu"}
RIGHT = crop_resize(FRAME, BOXES, (8, 8), **OPTIONS)
BATCH, OFFSETS = RaggedBatch.from_arrays(np.arange(6, dtype=np.float32), [[2, 2], [1, 2]]), [0, 4, 6]
PLAN = CropPlan(torch.from_numpy(FRAME), 2, (8, 8), **OPTIONS)


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


@pytest.mark.parametrize("function", [cropped, planned, in_a_new_plan, of_tiles, multiplied], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_call_inside_a_compiled_function_is_the_same_call(function):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    for count in (2, 1, 2):
        boxes, tiles = torch.from_numpy(BOXES)[:count], torch.tensor([[0, 0, 9, 9], [5, 5, 8, 9]])[:count]
        assert torch.equal(compiled(boxes, tiles), function(boxes, tiles))


@pytest.mark.parametrize("function", [
    lambda values: ops.multiply(BATCH.like(values), 2.0, device="cpu").values + 1,
    lambda values: RaggedBatch(values, OFFSETS).values + 1,
    lambda values: RaggedBatch.from_offsets(values, OFFSETS).values + 1,
    lambda values: RaggedBatch.from_arrays(values, [[2, 2], [1, 2]]).values + 1,
    lambda values: RaggedBatch.from_list([values[:3], values[3:]]).values + 1,
    lambda values: BATCH.like(values)[0] + 1,
    lambda values: BATCH.like(values).to_list()[1] + 1,
    lambda values: next(iter(BATCH.like(values))) + 1,
    lambda values: BATCH.like(values).to_padded() + 1,
    lambda values: RaggedBatch.from_offsets(values, OFFSETS).to_torch().values() + 1,
    lambda values: values + len(BATCH) + BATCH.size + BATCH.offsets_on_host,
    lambda values: values + blockmap.build("lookup", OFFSETS).nbytes,
    lambda values: values + blockmap.build("block_metadata", OFFSETS, threshold=2).blocks,
    lambda values: values + octopus.otsu_threshold([0.5, 0.9]) + octopus.best_within([0.9, 0.5], [6, 5], 7)[0],
], ids=["like", "init", "from_offsets", "from_arrays", "from_list", "item", "to_list", "iter", "to_padded", "to_torch",
        "facts", "build", "blocks", "rules"])  # fmt: skip
def test_batches_inside_a_compiled_function(function):
    values = torch.arange(6.0)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module="octopus")
        assert torch.equal(torch.compile(function, backend="eager")(values), function(values))


@pytest.mark.parametrize("recorder", ["make_fx", "jit"])
@pytest.mark.filterwarnings("ignore")
def test_a_recorded_call_is_refused(recorder):
    from torch.fx.experimental.proxy_tensor import make_fx

    record = {"make_fx": make_fx, "jit": lambda function: partial(torch.jit.trace, function)}[recorder]
    frame = torch.from_numpy(FRAME)
    with pytest.raises(InputError, match=r"frame is .* recorded.*call Octopus outside"):
        record(lambda x: crop_resize(x, BOXES, (8, 8), device="cpu"))(frame)
    assert np.array_equal(crop_resize(frame, BOXES, (8, 8), **OPTIONS), RIGHT)


def test_other_modes_of_torch_record_nothing():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        assert np.array_equal(crop_resize(torch.from_numpy(FRAME), BOXES, (8, 8), **OPTIONS), RIGHT)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("columns", "whole", "error", "words"), [
    (4, True, Exception, "Octopus works on memory"), (3, False, InputError, r"shape \(N, 4\)"),
], ids=["a whole graph", "wrong boxes"])  # fmt: skip
def test_errors_pass_through_a_compiled_function(columns, whole, error, words):
    torch._dynamo.reset()
    boxes = torch.from_numpy(BOXES)[:, :columns]
    with pytest.raises(error, match=words):
        torch.compile(cropped, backend="eager", fullgraph=whole)(boxes, None)


def test_a_mapped_tensor_is_told():
    with pytest.raises(InputError, match=r"boxes is a .*vmap.*call Octopus outside"):
        torch.func.vmap(lambda boxes: crop_resize(FRAME, boxes, (8, 8), device="cpu"))(torch.zeros(3, 2, 4))


@pytest.mark.parametrize(("boxes", "said"), [
    (lambda: torch.from_numpy(BOXES).requires_grad_(), r"requires grad.*it with \.detach\(\)"),
    (lambda: torch.from_numpy(BOXES).to_sparse(), r"layout torch.sparse_coo.*to_dense\(\)"),
    (lambda: torch.zeros(2, 4, device="meta"), "lies on meta"),
    (lambda: torch.quantize_per_tensor(torch.zeros(2, 4), 1.0, 0, torch.qint8), "dtype qint8"),
    (lambda: FakeTensorMode().from_tensor(torch.zeros(2, 4)), "call Octopus outside of them"),
    (lambda: torch.complex(torch.ones(2, 4), torch.ones(2, 4)).conj().imag, r"pass boxes\.resolve_neg\(\)"),
], ids=["grad", "sparse", "meta", "quantised", "fake", "negative"])  # fmt: skip
def test_tensors_without_values_of_their_own_are_refused(boxes, said):
    with pytest.raises(InputError, match=said):
        crop_resize(FRAME, boxes(), (8, 8), device="cpu")


@pytest.mark.parametrize("name", ["mean", "std", "scale"])
def test_a_mean_that_requires_grad_is_to_be_detached(name):
    with pytest.raises(InputError, match=rf"{name} requires grad.*it with \.detach\(\)"):
        crop_resize(FRAME, BOXES, **{name: torch.ones(3, requires_grad=True)}, device="cpu")


@pytest.mark.parametrize("options", [
    {"mean": torch.full((3,), 100.0), "std": torch.full((3, 1, 1), 50.0)},
    {"mean": torch.tensor(100), "std": torch.full((1, 3, 1, 1), 50.0, dtype=torch.float64)},
    {"dtype": torch.float32, "device": torch.device("cpu")},
    {"size": torch.Size([8, 8]), "scale": torch.tensor(2.0), "mean": 50, "std": torch.tensor(25.0)},
], ids=["three", "scalar", "names", "size"])  # fmt: skip
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
        "XYXY": [x1, y1, x2, y2], "XYWH": [x1, y1, x2 - x1, y2 - y1],
        "CXCYWH": [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1],
    }[layout]  # fmt: skip
    boxes = tv_tensors.BoundingBoxes(torch.stack(values, 1), format=layout, canvas_size=(40, 60))
    assert np.array_equal(crop_resize(FRAME, boxes, (8, 8), **OPTIONS), RIGHT)
    assert np.array_equal(PLAN.run(torch.from_numpy(FRAME), boxes).numpy(), RIGHT)


def test_bounding_boxes_are_tiles_by_their_format():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    image, corners = FRAME, [[10, 5, 50, 35], [0, 0, 9, 9]]
    boxes = tv_tensors.BoundingBoxes([[10, 5, 40, 30], [0, 0, 9, 9]], format="XYWH", canvas_size=(40, 60))
    right = octopus.tile_means(image, corners, device="cpu")
    assert np.array_equal(octopus.tile_means(image, boxes, device="cpu"), right)
    assert np.array_equal(keep_tiles(image, boxes, 0.5, device="cpu")[1], right)
    assert np.array_equal(TilePlan(image, boxes, device="cpu").run(image)[1], right)
    rotated = tv_tensors.BoundingBoxes(torch.zeros(1, 5), format="XYWHR", canvas_size=(40, 60))
    for function in (octopus.tile_means, crop_resize):
        with pytest.raises(InputError, match="are BoundingBoxes of the format XYWHR"):
            function(image, rotated, device="cpu")


def test_map_back_takes_corners_alone():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    transform = torch.tensor([[2.0, 2.0, 5.0, 6.0]])
    for layout in ("XYWH", "CXCYWH"):
        boxes = tv_tensors.BoundingBoxes(torch.ones(1, 4), format=layout, canvas_size=(8, 8))
        with pytest.raises(InputError, match=f"BoundingBoxes of the format {layout}; convert them to XYXY"):
            map_back(boxes, transform)
    corners = tv_tensors.BoundingBoxes(torch.ones(1, 4), format="XYXY", canvas_size=(8, 8))
    assert map_back(corners, transform).tolist() == [[7, 8, 7, 8]]


def test_no_boxes_are_an_empty_tensor():
    assert crop_resize(FRAME, torch.empty(0), 8, device="cpu").shape == (0, 3, 8, 8)
