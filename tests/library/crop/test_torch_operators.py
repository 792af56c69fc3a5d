"""Operators of torch: the answer of the functions, in compiled and exported graphs, with their errors."""

from functools import partial

import numpy as np
import pytest

from octopus import InputError, images

torch = pytest.importorskip("torch")
operators = pytest.importorskip("octopus.torch")

RNG = np.random.default_rng(7)
FRAME = torch.from_numpy(RNG.integers(0, 256, (40, 60, 3), np.uint8))
FRAMES = torch.from_numpy(RNG.integers(0, 256, (2, 40, 60, 4), np.uint8))
BOXES = torch.tensor([[1, 2, 30, 30], [0, 0, 9, 9], [5, 5, 50, 38]])
IMAGES = [torch.from_numpy(RNG.integers(0, 256, shape, np.uint8)) for shape in ((40, 60, 3), (3, 33, 90), (70, 31, 3))]
ROWS = {"scale": 255, "mean": 0.5, "std": [0.5, 0.25, 0.5]}
CROPS = [
    {"size": 8},
    {"size": (8, 12), "scale": 255, "mean": [0.4, 0.5, 0.6], "std": 0.5, "dtype": "float16", "layout": "NHWC"},
    {"size": 8, "dtype": torch.bfloat16, "antialias": True},
    {"size": 8, "letterbox": True, "return_transform": True, "pad_value": 3},
    {"size": 8, "outside": "pad", "pad_mode": "edge", "filter": "bicubic", "edge": "image"},
    {"size": 8, "mean": torch.full((3, 3), 9.0), "std": torch.full((3, 3), 2.0), "flip": torch.tensor([0, 1, 3])},
]  # fmt: skip
RESIZES = [
    {"size": 16, "filter": "bicubic", "rounding": "uint8", **ROWS},
    {"size": (16, 20), "letterbox": True, "return_transform": True, "pad_value": [1, 2, 3], "layout": "NHWC"},
    {"size": 16, "crop": "center", "shortest": 20, "dtype": "float16"},
]
PATCHES = [
    {"sizes": images.smart_sizes, **ROWS},
    {"sizes": partial(images.smart_sizes, factor=32, max_pixels=4096), "patch": 16, "dtype": "bfloat16"},
    {"sizes": partial(images.fit_sizes, max_rows=9), "patch": 16, "order": "PPC", "filter": "bilinear", "max_rows": 9},
    {"sizes": [[28, 56], [56, 28], [28, 28]], "temporal": 1, "rounding": "none", "row_multiple": 8, "dtype": "int8"},
]
CALLS = [
    *(partial(operators.crop_resize, FRAME, BOXES, **given) for given in CROPS),
    partial(operators.crop_resize, FRAMES, BOXES.float(), 8, frame_index=torch.tensor([1, 0, 1]), channels="BGRA"),
    *(partial(operators.resize, IMAGES, **given) for given in RESIZES),
    *(partial(operators.patch_rows, IMAGES, **given) for given in PATCHES),
]


whole = partial(torch.compile, backend="eager", fullgraph=True)


def several(answer):
    return [answer] if isinstance(answer, torch.Tensor) else list(answer)


def assert_same(found, right):
    for one, other in zip(several(found), several(right), strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_graph_gives_the_same_answer(call, backend):
    tensors = call.args[0] if isinstance(call.args[0], list) else [call.args[0]]

    def function(*given):
        first = list(given) if isinstance(call.args[0], list) else given[0]
        return [value + 1 for value in several(call.func(first, *call.args[1:], **call.keywords))]

    assert_same(torch.compile(function, backend=backend, fullgraph=True)(*tensors), function(*tensors))


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_the_operators_are_as_torch_wants_them(call, monkeypatch):
    """Schema, shapes, dtypes and strides without values, and gradients, by torch's own check."""
    asked = []

    def heard(operator, *args, **named):
        asked.append((operator, args, named))
        return operator(*args, **named)

    for name in ("crop_resize", "crop_letterbox", "resize", "letterbox", "patch_rows"):
        monkeypatch.setattr(torch.ops.octopus, name, partial(heard, getattr(torch.ops.octopus, name)))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    call()
    monkeypatch.undo()
    operator, args, named = asked[0]
    assert_same(operator(*args, **named), call())
    assert set(torch.library.opcheck(operator.default, args, named).values()) == {"SUCCESS"}


def test_the_number_of_boxes_may_change_in_one_graph():
    layer = whole(operators.CropResize(8, scale=255), dynamic=True)
    for count in (3, 2, 1):
        assert_same(layer(FRAME, BOXES[:count]), operators.CropResize(8, scale=255)(FRAME, BOXES[:count]))


def test_an_exported_module_crops():
    layer = operators.CropResize((8, 8), mean=[100.0, 110.0, 120.0], std=50.0)
    boxes = torch.export.Dim("boxes", min=1, max=64)
    shapes = {"frame": None, "boxes": {0: boxes}}
    exported = torch.export.export(layer, (FRAME, BOXES), dynamic_shapes=shapes)
    assert "octopus.crop_resize" in str(exported.graph)
    assert_same(exported.module()(FRAME, BOXES[:2]), layer(FRAME, BOXES[:2]))
    assert "size=(8, 8)" in repr(layer)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: operators.crop_resize(FRAME, BOXES[:, :3], 8), r"shape \(N, 4\)"),
    (lambda: operators.crop_resize(FRAME[:, :9].permute(2, 0, 1), BOXES, 8), "channels of a frame come last"),
    (lambda: operators.crop_resize(FRAME, BOXES, 8, layout="CHWN"), "layout='CHWN' is unknown"),
    (lambda: operators.resize(IMAGES, 16, crop="middle"), "crop='middle' is unknown"),
    (lambda: operators.patch_rows(IMAGES, [[28, 28]]), "3"),
    (lambda: operators.patch_rows(IMAGES, lambda sides: sides), "while torch compiles, pass"),
    (lambda: operators.patch_rows(IMAGES, partial(images.smart_sizes, min_pixels=-1)), "positive integers by name"),
    (lambda: operators.resize(FRAMES, 8), "list of tensors"),
    (lambda: operators.crop_resize(FRAME.bfloat16(), BOXES, 8), "dtype bfloat16, which NumPy"),
], ids=["boxes", "frame", "layout", "crop", "sizes", "rule", "limits", "tensor", "dtype"])  # fmt: skip
def test_errors_come_while_compiling(call, message):
    with pytest.raises(Exception, match=message):
        whole(call)()


def test_a_frame_of_many_channels_may_have_any_height():
    frame = torch.from_numpy(RNG.integers(0, 256, (40, 60, 8), np.uint8))
    compiled = whole(lambda f: operators.crop_resize(f, BOXES, 8), dynamic=True)
    for height in (40, 39):
        assert_same(compiled(frame[:height]), operators.crop_resize(frame[:height], BOXES, 8))


def test_numbers_of_numpy_and_counts_may_be_compiled():
    layer = operators.CropResize(8, mean=np.array([1.0, 2.0, 3.0]), std=np.float32(2))
    compiled = whole(layer)
    assert torch.equal(compiled(FRAME, BOXES, count=2)[:2], layer(FRAME, BOXES)[:2])
    half = whole(lambda: operators.crop_resize(FRAME, BOXES, FRAME.shape[0] // 5))
    assert half().shape == (3, 3, 8, 8)


def test_gradients_are_refused():
    frame = FRAME.float().requires_grad_()
    for call in (operators.crop_resize, torch.ops.octopus.crop_resize):
        with pytest.raises(InputError, match="no gradient"):
            call(frame, BOXES, [8, 8])
    with pytest.raises(Exception, match="no gradient"):
        torch.compile(lambda f: operators.crop_resize(f, BOXES, 8).sum(), backend="aot_eager")(frame).backward()


def test_a_layer_refuses_options_that_it_cannot_have():
    with pytest.raises(InputError, match="unknown"):
        operators.CropResize(8, layout="CHWN")
    with pytest.raises(TypeError, match="out"):
        operators.CropResize(8, out=FRAME)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_compiled_function_on_a_gpu(mode):
    """Also as a CUDA graph of torch's, with a count that only the GPU knows."""
    frame, boxes = FRAME.cuda(), BOXES.cuda().float()

    def function(frame, boxes, count):
        crops = operators.crop_resize(frame, boxes * 0.5, 8, scale=255, count=count)
        return crops[:2] * 2

    compiled = torch.compile(function, mode=mode, fullgraph=True)
    for count in (2, 3, 2):
        number = torch.tensor(count, device="cuda")
        assert_same(compiled(frame, boxes, number).clone(), function(frame, boxes, number))


@pytest.mark.gpu
def test_the_operators_are_as_torch_wants_them_on_a_gpu():
    frame, boxes, pictures = FRAME.cuda(), BOXES.cuda(), [image.cuda() for image in IMAGES]
    for operator, given in (
        (torch.ops.octopus.crop_resize, (frame, boxes, [8, 8])),
        (torch.ops.octopus.resize, (pictures, [16, 16])),
        (torch.ops.octopus.patch_rows, (pictures, [28, 56, 56, 28, 28, 28])),
    ):
        assert set(torch.library.opcheck(operator.default, given).values()) == {"SUCCESS"}
