"""Frames of video, NV12 and P010, and frames whose channels lie in another order, beside those of the table."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from cases.crops import random_frame
from exported import Exported

from octopus import NV12, P010, CropPlan, FrameStream, InputError, crop_resize
from octopus.crop.frame import Coding, frame_spec, frame_view
from octopus_study.reference import crops as reference

MATRICES, RANGES = ("bt601", "bt709", "bt2020"), ("limited", "full")
CODINGS = list(product((NV12, P010), MATRICES, RANGES))
HEIGHT, WIDTH = 100, 150
BOXES = np.array(
    [(0, 0, 150, 100), (3, 5, 40, 90), (10.5, 3.25, 70.75, 60.5), (149, 99, 150, 100), (147.2, 3, 149.9, 8),
     (1, 0, 148, 99), (131, 51, 150, 100)], np.float32,
)  # fmt: skip
FINE = 5e-3  # levels
ARITHMETIC = 2e-4  # float32 coefficients, whose terms reach 547, against float64


def video(form, matrix="bt709", range="limited", height=HEIGHT, width=WIDTH, seed=0):
    """All values that 8 or 10 bits have, in rows that are further apart than their length."""
    top, unit, dtype = (1024, 64, np.uint16) if form is P010 else (256, 1, np.uint8)
    dice = np.random.default_rng(seed)
    y = (dice.integers(0, top, (height, width + 7)) * unit).astype(dtype)[:, :width]
    uv = (dice.integers(0, top, (height // 2, width + 20)) * unit).astype(dtype)[:, :width]
    return form(y, uv, matrix=matrix, range=range)


def rgb(frame):
    return reference.rgb_of_video(frame.y, frame.uv, frame.coding.matrix, frame.coding.range)


def pixels(frame, **options):
    """All of a frame, (H, W, 3)."""
    size = frame.y.shape
    return crop_resize(frame, [[0, 0, size[1], size[0]]], size, layout="NHWC", device="cpu", **options)[0]


@pytest.mark.parametrize(("form", "matrix", "range"), CODINGS)
def test_pixels_are_those_of_the_recommendations(form, matrix, range):
    frame = video(form, matrix, range)
    assert np.abs(pixels(frame) - rgb(frame)).max() < ARITHMETIC


@pytest.mark.parametrize(("form", "matrix", "range"), CODINGS)
def test_colours_come_back_from_how_they_are_coded(form, matrix, range):
    """Colours are coded by the definition, Y = KR R + KG G + KB B, and rounded to levels."""
    colours = np.random.default_rng(1).random((40, 60, 3)).repeat(2, axis=0).repeat(2, axis=1)
    red, blue = reference.LUMA[matrix]
    luma = colours @ (red, 1 - red - blue, blue)
    chroma = np.stack([(colours[..., 2] - luma) / (2 - 2 * blue), (colours[..., 0] - luma) / (2 - 2 * red)], axis=-1)
    bits, unit = (10, 64) if form is P010 else (8, 1)
    step, top = 2 ** (bits - 8), 2**bits - 1
    scales = (219 * step, 224 * step) if range == "limited" else (top, top)
    y = np.rint(luma * scales[0] + (16 * step if range == "limited" else 0))
    uv = np.rint(chroma[::2, ::2] * scales[1] + 128 * step).clip(0, top)
    frame = form(*((plane * unit).astype(np.uint8 if bits == 8 else np.uint16) for plane in (y, uv)),
                 matrix=matrix, range=range)  # fmt: skip
    half_a_level = 255 / scales[0] * (0.5 + 0.5 * 2)  # of luma, and of chroma with a factor of up to 1.89
    assert np.abs(pixels(frame) - 255 * colours).max() < half_a_level
    other = form(frame.y, frame.uv, matrix=MATRICES[MATRICES.index(matrix) - 1], range=range)
    assert np.abs(pixels(other) - 255 * colours).max() > 5


@pytest.mark.parametrize("form", [NV12, P010])
@pytest.mark.parametrize(("height", "width"), [(2, 2), (2, 14), (4, 16), (2, 18)])
def test_small_frames_and_both_shapes_of_chroma(form, height, width):
    frame = video(form, height=height, width=width)
    pairs = form(frame.y, np.ascontiguousarray(frame.uv).reshape(height // 2, width // 2, 2), **named(frame))
    for antialias in (False, True):
        found = crop_resize(frame, [[1, 0, width, height]], (1, 3), antialias=antialias, device="cpu")
        right = reference.crop_resize(rgb(frame), [[1, 0, width, height]], (1, 3), 0, 1, antialias=antialias)
        assert np.abs(found - right).max() < FINE
        again = crop_resize(pairs, [[1, 0, width, height]], (1, 3), antialias=antialias, device="cpu")
        assert np.array_equal(found, again)


def named(frame):
    return {"matrix": frame.coding.matrix, "range": frame.coding.range}


def test_a_plan_takes_any_coding_of_its_kind_and_no_other_frames():
    frame, other = video(NV12), video(NV12, "bt2020", "full", 60, 80)
    plan = CropPlan(frame, 3, (9, 8), device="cpu")
    for given in (frame, other, frame):
        once = crop_resize(given, BOXES[1:2] / 4, (9, 8), device="cpu")
        assert np.array_equal(plan.run(given, BOXES[1:2] / 4), once)
    for wrong in (video(P010), random_frame(HEIGHT, WIDTH)):
        with pytest.raises(InputError, match="the plan is for frames of"):
            plan.run(wrong, BOXES[:1])
    with pytest.raises(InputError, match="the plan is for frames of"):
        CropPlan(random_frame(HEIGHT, WIDTH), 3, (9, 8), device="cpu").run(frame, BOXES[:1])


@pytest.mark.parametrize("wrong", ["y", "uv"])
def test_a_result_in_the_memory_of_either_plane_is_refused(wrong):
    space = np.zeros((1, 3, 64, 64), np.uint8)
    planes = {"y": np.zeros((64, 64), np.uint8), "uv": np.zeros((32, 64), np.uint8)}
    options = {"size": 64, "dtype": "uint8", "device": "cpu", "out": space}
    crop_resize(NV12(**planes, matrix="bt709", range="full"), [[0, 0, 64, 64]], **options)
    planes[wrong] = space[0, 1, : len(planes[wrong])]
    with pytest.raises(InputError, match="out lies in the memory of frame"):
        crop_resize(NV12(**planes, matrix="bt709", range="full"), [[0, 0, 64, 64]], **options)


def test_torch_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    frame = video(NV12)
    tensors = NV12(*(torch.from_numpy(plane) for plane in (frame.y, frame.uv)), **named(frame))
    found = crop_resize(tensors, BOXES, 8, device="cpu")
    assert isinstance(found, torch.Tensor)
    assert np.array_equal(found.numpy(), crop_resize(frame, BOXES, 8, device="cpu"))


def test_coefficients_are_those_of_the_tables():
    """The numbers that BT.601 is known by, of whole levels."""
    full = Coding("nv12", "bt601", "full").coefficients
    assert np.allclose(full, [1, 1.402, -179.456, -0.344136, -0.714136, 135.458816, 1.772, -226.816], atol=1e-5)
    limited = Coding("nv12", "bt601", "limited").coefficients
    assert np.allclose(limited[[0, 1, 3, 4, 6]], [1.164384, 1.596027, -0.391762, -0.812968, 2.017232], atol=1e-6)
    assert full is Coding("nv12", "bt601", "full").coefficients and not full.flags.writeable


def test_both_planes_go_to_the_gpu_one_behind_the_other(gpu):
    frame = video(NV12)
    crop_resize(frame, BOXES, 8, device="cuda")
    (made,), planes = gpu.launches, [(to, content) for to, _, content in gpu.copies[:2]]
    assert [content for _, content in planes] == [np.ascontiguousarray(p).tobytes() for p in (frame.y, frame.uv)]
    assert planes[1][0] == planes[0][0] + HEIGHT * WIDTH
    assert made.values[:4] == (planes[0][0], WIDTH, WIDTH, HEIGHT)
    assert made.values[-10:-8] == (planes[1][0], WIDTH)
    assert made.values[-8:] == tuple(frame_view(frame).coding.coefficients / np.float32(255))


def test_only_a_known_order_of_as_many_channels_is_taken():
    for order, channels in (("BGR", 4), ("BGRA", 3), ("RGBA", 1)):
        words = f'channels="{order}" is for frames of {len(order)} channels, found {channels}'
        with pytest.raises(InputError, match=words):
            crop_resize(random_frame(9, 9, channels), [[0, 0, 9, 9]], 4, channels=order, device="cpu")
    spec = frame_spec(frame_view(random_frame(9, 9, 4)), "BGRA")
    assert (spec.channels, spec.stored, spec.name) == (3, 4, "uint8x3-bgra")


@pytest.mark.parametrize("form", [NV12, P010])
def test_a_stream_takes_video_and_other_orders(form):
    frame = random_frame(HEIGHT, WIDTH, 4)
    stream = FrameStream(frame, 3, (8, 9), channels="BGRA", device="cpu")
    stream.buffer()[...] = frame
    right = crop_resize(frame[..., 2::-1].copy(), BOXES[:2], (8, 9), device="cpu")
    assert np.array_equal(stream.submit(BOXES[:2]), right)
    frames = [video(form, seed=seed) for seed in range(3)]
    stream = FrameStream(frames[0], 3, (8, 9), device="cpu")
    for frame in frames:
        buffer = stream.buffer()
        assert type(buffer) is form and buffer.coding == frame.coding
        buffer.y[...], buffer.uv[...] = frame.y, frame.uv
        assert np.array_equal(stream.submit(BOXES[:2]), crop_resize(frame, BOXES[:2], (8, 9), device="cpu"))


class ExportedOnce(Exported):
    """As exporters were before DLPack had versions: `__dlpack__` takes a stream and nothing else."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


@pytest.mark.parametrize("kind", [Exported, ExportedOnce])
@pytest.mark.parametrize("form", [NV12, P010])
def test_planes_may_offer_dlpack_and_nothing_else(form, kind):
    """Both with rows further apart than their length, as decoders' surfaces have them; no plane is copied."""
    frame = video(form)
    pairs = frame.uv.reshape(HEIGHT // 2, WIDTH // 2, 2)
    assert frame.y.strides[0] > WIDTH * frame.y.itemsize and np.shares_memory(pairs, frame.uv)
    right = crop_resize(frame, BOXES, 8, device="cpu")
    for planes in ((frame.y, frame.uv), (frame.y[..., None], pairs)):
        exported = form(*map(kind, planes), **named(frame))
        assert repr(exported) == repr(frame) and f"{WIDTH}x{HEIGHT}" in repr(frame)
        seen = frame_view(exported)
        assert [seen.pointer, seen.chroma.pointer] == [plane.ctypes.data for plane in planes]
        assert np.array_equal(crop_resize(exported, BOXES, 8, device="cpu"), right)


def on_gpu(shape, dtype, address, pitch):
    """A plane of which nothing is read but where it lies."""
    there = {"shape": shape, "typestr": np.dtype(dtype).str, "data": (address, False), "version": 3}
    item = np.dtype(dtype).itemsize
    strides = pitch, *(item * step for step in ((1,), (shape[-1], 1))[len(shape) - 2])
    return SimpleNamespace(__cuda_array_interface__={**there, "strides": strides})


@pytest.mark.parametrize("form", [NV12, P010])
def test_planes_on_the_gpu_may_have_the_shapes_of_pynvvideocodec(form):
    """Luma (H, W, 1) and chroma (H/2, W/2, 2), by `__cuda_array_interface__` alone."""
    item = 2 if form is P010 else 1
    planes = [
        (on_gpu(luma, f"u{item}", 8192, 16 * item), on_gpu(chroma, f"u{item}", 4096, 32 * item))
        for luma, chroma in (((6, 8), (3, 8)), ((6, 8, 1), (3, 4, 2)))
    ]
    flat, deep = (frame_view(form(*pair, matrix="bt709", range="full")) for pair in planes)
    assert flat.layout == deep.layout and (deep.pointer, deep.chroma.pointer) == (8192, 4096)
    assert deep.strides == (16 * item, item, 0) and deep.chroma.strides == (32 * item, 2 * item, item)


@pytest.mark.parametrize(("address", "pitch"), [(4097, 8), (4096, 9)])
@pytest.mark.parametrize("form", [NV12, P010])
def test_pairs_of_chroma_on_the_gpu_are_read_as_one_number(form, address, pitch):
    """At an odd address that is an error of the device, after which nothing there works."""
    item = 2 if form is P010 else 1
    dtype, coding = f"u{item}", {"matrix": "bt709", "range": "full"}
    y = on_gpu((6, 8), dtype, 8192, 8 * item)
    form(y, on_gpu((3, 8), dtype, 4096, 8 * item), **coding)
    with pytest.raises(InputError, match=f"pairs of uv on the GPU must lie at multiples of {2 * item} bytes"):
        form(y, on_gpu((3, 8), dtype, address * item, pitch * item), **coding)


def test_planes_are_no_larger_than_the_kernels_count():
    uv, coding = on_gpu((1 << 15, 8), "u1", 4096, 8), {"matrix": "bt709", "range": "full"}
    NV12(on_gpu((1 << 16, 8), "u1", 8192, 1 << 16), uv, **coding)
    with pytest.raises(InputError, match="y has 65536 rows 65538 bytes apart, more than 32 bits count"):
        NV12(on_gpu((1 << 16, 8), "u1", 8192, (1 << 16) + 2), uv, **coding)
