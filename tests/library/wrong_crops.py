"""Wrong calls of what crops: `crop_resize`, `CropPlan`, `FrameStream`, `map_back`, threads and warming up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from wrong_calls import Equal, Error, Later, no_gpu, python, rows, same, too_much, torch

import octopus
from octopus import CropPlan, FrameStream, InputError, crop_resize, map_back

FRAME = np.random.default_rng(3).integers(0, 256, (6, 8, 3), np.uint8)
FRAMES = np.stack([FRAME, FRAME[::-1]])
WIDE = np.zeros((1, 40_000, 1), np.uint8)
BOXES = np.array([[1, 1, 5, 4], [0, 0, 8, 6]])
SHAPE = (2, 3, 4, 5)
NAN, INF = np.nan, np.inf


def read_only(array):
    """A copy that may not be written."""
    array = array.copy()
    array.flags.writeable = False
    return array


class Exported:
    """What offers DLPack alone."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def crop(frame=FRAME, boxes=BOXES, **options):
    return crop_resize(frame, boxes, **{"size": (4, 5), "device": "cpu", **options})


def padded(**options):
    return crop(boxes=[[-3, 1, 5, 4]], outside="pad", **options)


def boxed(**options):
    return crop(letterbox=True, **options)


def several(frame=FRAMES, **options):
    return crop(frame=frame, **options)


def aliased(name):
    """A result that lies in the memory of the frame or the boxes."""
    memory = np.zeros(1000, np.float32)
    frame = memory.view(np.uint8)[100:244].reshape(FRAME.shape)
    boxes = memory[300:308].reshape(2, 4)
    boxes[:] = BOXES
    out = memory[:120] if name == "frame" else memory[200:320]
    return crop_resize(frame, boxes, (4, 5), out=out.reshape(SHAPE), device="cpu")


def plan(frame=FRAME, max_boxes=3, **options):
    made = CropPlan(frame, max_boxes, **{"size": (4, 5), "device": "cpu", **options})
    return made.run(FRAME, BOXES)


def run(frame=FRAME, boxes=BOXES, allocate=True, **given):
    return CropPlan(FRAME, 2, (4, 5), device="cpu", allocate=allocate).run(frame, boxes, **given)


def stream(frame=FRAME, max_boxes=3, **options):
    made = FrameStream(frame, max_boxes, **{"size": (4, 5), "device": "cpu", **options})
    made.buffer()[...] = FRAME
    return made.submit(BOXES)


def submit(boxes):
    return FrameStream(FRAME, 2, (4, 5), device="cpu").submit(boxes)


TRANSFORM = np.array([[2.0, 2.0, 10.0, 20.0]], np.float32)


def back(positions=((1.0, 2.0),), transform=TRANSFORM):
    return map_back(positions, transform)


def set_threads(count):
    before = octopus.set_num_threads(count)
    return octopus.set_num_threads(before)


ROWS = [
    *rows(
        "crop_resize", crop, "frame",
        (None, "frame is a NoneType"),
        ("photo.jpg", "frame is a str"),
        (5, "frame is a int"),
        (b"abc", "frame is a bytes"),
        ([FRAME, FRAME], "frame is a list of 2; stack frames"),
        (FRAME.tolist(), "frame is a list of 6"),
        ({"frame": 1}, "frame is a dict"),
        (FRAME[..., 0], "found (6, 8); a grey image is frame[..., None]"),
        (FRAME[0, 0], "frame must have shape (H, W, C)"),
        (FRAMES[None], "frame must have shape (H, W, C)"),
        (FRAME[..., :0], "found (6, 8, 0)"),
        (np.zeros((3, 40, 80), np.uint8), "numpy.ascontiguousarray(frame.transpose(1, 2, 0))"),
        (np.zeros((6, 8, 65), np.uint8), "found (6, 8, 65)"),
        (FRAME[:0], "found (0, 8, 3)"),
        (FRAME.astype(np.float64), "found float64"),
        (FRAME.astype(np.float16), "found float16"),
        (FRAME.astype(np.int16), "found int16"),
        (FRAME.astype(np.int32), "found int32"),
        (FRAME > 5, "found bool"),
        (FRAME.astype(np.complex64), "found complex64"),
        (FRAME.astype(object), "found object"),
        (FRAME.astype(str), "found <U3"),
        (FRAME.astype(">u2"), "machine's byte order, found >u2"),
        (np.ma.masked_array(FRAME, FRAME > 9), "frame is a masked array"),
        (FRAME[:, ::2], "numpy.ascontiguousarray"),
        (FRAME[..., ::-1], "numpy.ascontiguousarray"),
        (FRAME[::-1], "numpy.ascontiguousarray"),
        (np.asfortranarray(FRAME), "numpy.ascontiguousarray"),
        (torch(lambda t: t.from_numpy(FRAME.copy()).to_sparse(), "sparse"), ".to_dense()"),
        (torch(lambda t: t.ones((6, 8, 3), requires_grad=True), "grad"), "frame requires grad"),
        (torch(lambda t: t.ones((6, 8, 3), dtype=t.bfloat16), "bfloat16"), "frame has the dtype bfloat16"),
        (torch(lambda t: t.ones((6, 8, 3), device="meta"), "meta"), "frame lies on meta"),
        (torch(lambda t: t.ones((6, 8, 3), dtype=t.uint8).permute(2, 0, 1), "CHW"), "permute(1, 2, 0)"),
        (torch(lambda t: t.from_numpy(FRAME.copy()), "tensor"), same()),
        (np.repeat(FRAME, 2, axis=0)[::2], same()),
        (read_only(FRAME), same()),
        (np.pad(FRAME, ((0, 0), (0, 3), (0, 0)))[:, :8], same()),
        (Later(lambda: Exported(FRAME), name="DLPack"), same()),
        (FRAME.astype(np.float32), same()),
        (FRAME.astype(np.uint16), same()),
        (FRAMES, "several frames (F, H, W, C) need frame_index"),
    ),
    *rows(
        "crop_resize", crop, "boxes",
        (None, "boxes is a NoneType"),
        ("1 2 3 4", "boxes is a str"),
        (7, "boxes is a int"),
        ({1: 2}, "boxes is a dict"),
        ((box for box in BOXES), "boxes is a generator"),
        ([1, 1, 5, 4], "boxes must have shape (N, 4), found (4,)"),
        ([[1, 1, 5]], "boxes must have shape (N, 4), found (1, 3)"),
        ([[[1, 1, 5, 4]]], "found (1, 1, 4)"),
        ([[1, 1, 5, 4], [1, 2]], "boxes must be an array, found rows of different length"),
        (BOXES > 2, "boxes must be integers or floats, found bool"),
        (BOXES.astype(complex), "found complex128"),
        ([["a", "b", "c", "d"]], "boxes must be integers or floats"),
        ([[1, 1, 5, None]], "found object"),
        (np.ma.masked_array(BOXES, BOXES > 5), "boxes is a masked array"),
        ([[1, 1, NAN, 4]], "box 0 = (1, 1, nan, 4) is not a number"),
        ([[1, 1, 5, 4], [0, -INF, 5, 4]], "box 1 = (0, -inf, 5, 4)"),
        ([[5, 1, 1, 4]], "box 0 = (5, 1, 1, 4) is empty"),
        ([[1, 4, 5, 4]], "is empty"),
        ([[1, 1, 5, 4], [9, 1, 12, 4]], "box 1 = (9, 1, 12, 4)"),
        ([[-5, -5, -1, -1]], "frame of 8x6 pixels"),
        ([[1, 1, 1 + 1e-9, 4]], "is empty"),
        (np.zeros((2, 5)), "found (2, 5)"),
        (torch(lambda t: t.ones((1, 4), requires_grad=True), "grad"), "boxes requires grad"),
        ([], same(boxes=np.empty((0, 4)))),
        (np.empty((0, 4), np.int16), same(boxes=np.empty((0, 4)))),
        (tuple(map(tuple, BOXES.tolist())), same()),
        (BOXES.astype(np.float16), same()),
        (BOXES.astype(">f8"), same()),
        (BOXES.astype(np.uint8), same()),
        (np.asfortranarray(BOXES), same()),
        (BOXES[::-1][::-1], same()),
        (SimpleNamespace(xyxy=BOXES), same()),
        (torch(lambda t: t.from_numpy(BOXES), "tensor"), same()),
        ([[-0.3, 1, 5, 4]], same(boxes=[[0, 1, 5, 4]])),
        ([[-(2**40), -1e30, 2**40, 1e30]], same(boxes=[[0, 0, 8, 6]])),
    ),
    *rows(
        "crop_resize", crop, "size",
        (0, "size must be (height, width) in positive integers"),
        (-3, "found -3"),
        ((0, 5), "found (0, 5)"),
        ((4, -5), "found (4, -5)"),
        ((4,), "found (4,)"),
        ((4, 5, 3), "found (4, 5, 3)"),
        ("4x5", "found '4x5'"),
        (None, "found None"),
        (4.0, "found 4.0"),
        ((4.0, 5.0), "found (4.0, 5.0)"),
        ((4, None), "found (4, None)"),
        (True, "found True"),
        ((4, True), "found (4, True)"),
        (NAN, "found nan"),
        (np.array([4.0, 5.0]), "size must be"),
        (np.ones((2, 2), int), "size must be"),
        ({4, 5}, "size must be"),
        ((70_000, 70_000), "more than 2**31 - 1 values"),
        (2**40, "more than 2**31 - 1 values"),
        ([4, 5], same()),
        (np.array([4, 5]), same()),
        (5, same(size=(5, 5))),
        (np.int64(5), same(size=(5, 5))),
        (torch(lambda t: t.Size([4, 5]), "Size"), same()),
    ),
    *rows(
        "crop_resize", crop, "mean",
        ("a", "mean must be one finite number or 3 (one per channel), found 'a'"),
        ([1, 2], "mean must be one finite number or 3"),
        ([1, 2, 3, 4], "mean must be one finite number or 3"),
        ([1, [2, 3], 4], "mean must be one finite number or 3"),
        (np.zeros((3, 3)), "mean must be one finite number or 3"),
        (NAN, "found nan"),
        ([0, INF, 0], "mean must be one finite number"),
        (1j, "found 1j"),
        (True, "found True"),
        ({}, "found {}"),
        (1e300, "leave the range of float32"),
        (np.ma.masked_array([1, 2, 3], [0, 1, 0]), "mean is a masked array"),
        (torch(lambda t: t.ones(3, requires_grad=True), "grad"), "mean requires grad"),
        (np.array([1, 2, 3]).reshape(3, 1, 1), same(mean=[1, 2, 3])),
        (np.array([1, 2, 3]).reshape(1, 3, 1, 1), same(mean=[1, 2, 3])),
        (torch(lambda t: t.tensor([1.0, 2.0, 3.0]), "tensor"), same(mean=[1, 2, 3])),
        (np.float32(4), same(mean=4)),
    ),
    *rows(
        "crop_resize", crop, "std",
        (0, "std must be positive, found [0.0"),
        (-1, "std must be positive"),
        ([1, 0, 2], "found [1.0, 0.0, 2.0]"),
        (NAN, "std must be one finite number"),
        (INF, "std must be one finite number"),
        ("a", "std must be one finite number"),
        ([1, 2], "std must be one finite number or 3"),
        (1e-50, "leave the range of float32"),
    ),
    *rows(
        "crop_resize", crop, "scale",
        (0, "scale must be positive"),
        (-255, "scale must be positive, found [-255.0"),
        (NAN, "scale must be one finite number"),
        ("255", "scale must be one finite number"),
        ([1, 2], "scale must be one finite number or 3"),
        (1e-50, "leave the range of float32"),
        (16, same(std=16)),
    ),
    *rows(
        "crop_resize", crop, "dtype",
        ("float64", "dtype='float64' is unknown; use one of float32, float16, uint8"),
        (None, "dtype='None' is unknown"),
        (int, "dtype='int64' is unknown"),
        (bool, "dtype='bool' is unknown"),
        ("uint16", "dtype='uint16' is unknown"),
        ("half precision", "dtype='half precision' is unknown"),
        (5, "dtype='5' is unknown"),
        ([], "dtype='void' is unknown"),
        (np.float32, same()),
        ("f4", same()),
        (np.dtype("uint8"), same(dtype="uint8")),
        (torch(lambda t: t.float16, "torch.float16"), same(dtype="float16")),
    ),
    *rows(
        "crop_resize", crop, "layout",
        ("CHW", "layout='CHW' is unknown; use one of NCHW, NHWC"),
        ("nchw", "layout='nchw' is unknown"),
        (None, "layout=None is unknown"),
        (["NCHW"], "layout=['NCHW'] is unknown"),
    ),
    *rows(
        "crop_resize", crop, "edge",
        ("imagee", "edge='imagee' is unknown; use one of box, image"),
        (None, "edge=None is unknown"),
        (np.array(["box", "image"]), "edge=array("),
    ),
    *rows(
        "crop_resize", crop, "antialias",
        ("yes", "antialias must be True or False, found 'yes'"),
        (1, "found 1"),
        (None, "found None"),
        (np.array([True, False]), "antialias must be True or False"),
        (np.True_, same(antialias=True)),
    ),
    *rows(
        "crop_resize", crop, "letterbox",
        ("no", "letterbox must be True or False, found 'no'"),
        (0, "found 0"),
        (np.True_, same(letterbox=True)),
    ),
    *rows(
        "crop_resize", crop, "outside",
        ("keep", "outside='keep' is unknown; use one of"),
        (None, "outside=None is unknown"),
        (True, "outside=True is unknown"),
        ("error", same()),
    ),
    *rows(
        "crop_resize", crop, "**",
        ({"boxes": [[-0.3, 1, 5, 4]], "outside": "error"}, "box 0 = (-0.3, 1, 5, 4)"),
        ({"boxes": [[-(2**25), 1, 5, 4]], "outside": "pad"}, "box 0"),
        ({"boxes": [[-9, 1, 17_000, 4]], "outside": "pad"}, "box 0"),
        ({"frame": WIDE, "boxes": [[0, 0, 20_000, 1]]}, "16384 pixels"),
        ({"pad_mode": "edge"}, "pad_mode='edge'"),
        ({"pad_mode": "mirror"}, "pad_mode='mirror' is unknown"),
        ({"pad_mode": "constant"}, same()),
        ({"pad_value": 5}, "pad_value=5 was given, but nothing is padded"),
        ({"boxes": [[0, 0, 1, 1]] * 9000, "size": 16_384}, too_much()),
        ({"size": (2**23, 1), "letterbox": True, "frame": FRAME[..., :1].copy()}, "letterbox=True takes sides up to"),
        ({"sise": 5}, python("crop_resize")),
        ({"swap_rb": True}, python("crop_resize")),
    ),
    *rows(
        "crop_resize-pad", padded, "pad_mode",
        ("mirror", "pad_mode='mirror' is unknown; use one of constant, edge, reflect"),
        (None, "pad_mode=None is unknown"),
    ),
    *rows(
        "crop_resize-letterbox", boxed, "pad_value",
        ("a", "pad_value must be one finite number or 3"),
        (NAN, "pad_value must be one finite number"),
        ([1, 2], "pad_value must be one finite number or 3"),
        (1e39, "pad_value [1e+39"),
        (None, same(pad_value=114)),
        (np.array([1, 2, 3]).reshape(3, 1, 1), same(pad_value=[1, 2, 3])),
    ),
    *rows(
        "crop_resize", several, "frame_index",
        (None, "several frames (F, H, W, C) need frame_index"),
        ([0], "frame_index must hold one integer per box, shape (2,)"),
        ([0.0, 1.0], "found float64"),
        ([True, False], "found bool"),
        ([[0, 1]], "of shape (1, 2)"),
        ([0, 2], "frame_index[1] = 2 but there are 2 frames"),
        ([-1, 0], "frame_index[0] = -1"),
        ("01", "frame_index is a str"),
        (1, "frame_index is a int"),
        ([0, None], "found object"),
        (np.ma.masked_array([0, 1], [0, 1]), "frame_index is a masked array"),
        ((0, 1), same(frame_index=np.array([0, 1]))),
        (np.array([0, 1], np.uint8), same(frame_index=np.array([0, 1]))),
        (np.array([0, 1], ">i8"), same(frame_index=np.array([0, 1]))),
    ),
    *rows(
        "crop_resize", crop, "frame_index",
        ([0, 0], "a single frame takes none"),
    ),
    *rows(
        "crop_resize", crop, "out",
        (np.zeros((2, 3, 5, 4), np.float32), "out must be a contiguous float32 array of shape (2, 3, 4, 5)"),
        (np.zeros((3, 3, 4, 5), np.float32), "found float32 of shape (3, 3, 4, 5)"),
        (np.zeros(SHAPE), "found float64"),
        (np.zeros(SHAPE, ">f4"), "found >f4"),
        (np.zeros((*SHAPE[:3], 10), np.float32)[..., ::2], "not contiguous"),
        (read_only(np.zeros(SHAPE, np.float32)), "out is read-only"),
        (np.zeros(SHAPE, np.float32).tolist(), "out is a list"),
        ("here", "out is a str"),
        (np.ma.zeros(SHAPE, np.float32), "out is a masked array"),
        (np.zeros(SHAPE, np.float32), same()),
    ),
    *rows(
        "crop_resize", aliased, "name",
        ("frame", "out lies in the memory of frame"),
        ("boxes", "out lies in the memory of boxes"),
    ),
    *rows(
        "crop_resize", crop, "stream",
        ("x", "stream"),
        (5, "works on the CPU; leave stream out"),
        (0, "works on the CPU; leave stream out"),
    ),
    *rows(
        "crop_resize", crop, "device",
        ("gpu", "device='gpu' is unknown; use one of auto, cpu, cuda"),
        ("CPU", "device='CPU' is unknown"),
        ("", "device='' is unknown"),
        (None, "device=None is unknown"),
        (0, "device=0 is unknown"),
        ("cuda:x", "device='cuda:x' is unknown"),
        (b"cpu", "device=b'cpu' is unknown"),
        ("cuda", no_gpu()),
        ("cuda:0", no_gpu()),
        ("cpu:0", same()),
        (torch(lambda t: t.device("cpu"), "device(cpu)"), same()),
        (torch(lambda t: t.device("cuda"), "device(cuda)"), no_gpu()),
        (torch(lambda t: t.device("meta"), "device(meta)"), "device=device(type='meta') is unknown"),
    ),
    *rows(
        "CropPlan", plan, "max_boxes",
        (-1, "max_boxes must be a non-negative integer, found -1"),
        (1.5, "found 1.5"),
        ("3", "found '3'"),
        (None, "found None"),
        (True, "found True"),
        (2**29, "536870912 boxes are more than one launch can address"),
        (np.int64(2), same()),
    ),
    *rows(
        "CropPlan", plan, "**",
        ({"frame": None}, "frame is a NoneType"),
        ({"frame": [FRAME]}, "frame is a list of 1"),
        ({"frame": FRAMES}, "the plan is for frames of"),
        ({"box_dtype": "float16"}, "box_dtype='float16' is unknown"),
        ({"index_dtype": "int8"}, "index_dtype='int8' is unknown"),
        ({"size": "big"}, "found 'big'"),
        ({"std": -1}, "std must be positive"),
        ({"pad_value": 3}, "nothing is padded"),
        ({"stream": 5}, "works on the CPU; leave stream out"),
        ({"device": "cuda"}, no_gpu()),
        ({"frame_index": [0, 0]}, python("CropPlan")),
        ({"max_boxes": 1}, "the plan is for 1 boxes, found 2; make a larger plan"),
        ({"allocate": False}, "pass out="),
        ({"max_boxes": 100_000, "size": 4096}, too_much()),
    ),
    *rows(
        "CropPlan.run", run, "**",
        ({"frame": FRAME.astype(np.uint16)}, "the plan is for frames of"),
        ({"frame": FRAME[..., :1].copy()}, "the plan is for frames of"),
        ({"frame": FRAMES, "frame_index": [0, 0]}, "the plan is for frames of"),
        ({"boxes": None}, "boxes is a NoneType"),
        ({"boxes": [[1, 1, 1, 4]]}, "is empty"),
        ({"frame_index": [0, 0]}, "a single frame takes none"),
        ({"out": np.zeros(SHAPE)}, "out must be a contiguous float32 array"),
        ({"stream": "x"}, "leave stream out"),
        ({"letterbox": True}, python("run")),
        ({"allocate": False, "out": np.zeros(SHAPE, np.float32)}, same()),
    ),
    *rows(
        "FrameStream", stream, "**",
        ({"frame": FRAMES}, "a stream takes frames (H, W, C) from the host"),
        ({"frame": None}, "frame is a NoneType"),
        ({"frame": FRAME.astype(int)}, "found int64"),
        ({"buffers": 0}, "buffers must be a positive integer, found 0"),
        ({"buffers": 1.5}, "found 1.5"),
        ({"buffers": True}, "found True"),
        ({"max_boxes": 1.5}, "max_boxes must be"),
        ({"max_boxes": 1}, "the plan is for 1 boxes, found 2"),
        ({"stream": "x"}, "leave stream out"),
        ({"device": "gpu"}, "device='gpu' is unknown"),
        ({"device": "cuda"}, no_gpu()),
        ({"edge": "imagee"}, "edge='imagee' is unknown"),
        ({"frame_index": [0, 0]}, python("FrameStream")),
        ({"buffers": np.int8(3)}, same()),
    ),
    *rows(
        "FrameStream.submit", submit, "boxes",
        (None, "boxes is a NoneType"),
        ([1, 2, 3, 4], "boxes must have shape (N, 4)"),
        ([[0, 0, NAN, 1]], "is not a number"),
        ([[0, 0, 1, 1]] * 3, "the plan is for 2 boxes, found 3"),
        ([], same(boxes=np.empty((0, 4)))),
    ),
    *rows(
        "map_back", back, "positions",
        (None, "positions is a NoneType"),
        ("ab", "positions is a str"),
        ([["a", "b"]], "positions must be integers or floats"),
        ([[1, 2], [3]], "positions must be an array"),
        ([[True, False]], "found bool"),
        ([[1j, 2]], "found complex128"),
        ([1.0, 2.0], "positions must have shape (1, ..., 2) or (1, ..., 4)"),
        ([[1.0, 2.0, 3.0]], "found (1, 3)"),
        ([[1.0, 2.0]] * 2, "one row per item, found (2, 2)"),
        (torch(lambda t: t.ones((1, 2)), "tensor"), "positions come from torch, the transform from numpy"),
        ([[1, 2]], Equal(np.array([[12.0, 24.0]]))),
    ),
    *rows(
        "map_back", back, "transform",
        (None, "transform is a NoneType"),
        (TRANSFORM[:, :3], "transform must have shape (N, 4), found (1, 3)"),
        (TRANSFORM[0], "found (4,)"),
        (TRANSFORM.astype(str), "transform must be integers or floats"),
        (TRANSFORM[:0], "one row per item, found (1, 2)"),
    ),
    *rows(
        "set_num_threads", set_threads, "count",
        (0, "from 1 to 1024, found 0"),
        (-2, "found -2"),
        (1025, "found 1025"),
        (1.5, "found 1.5"),
        ("2", "found '2'"),
        (None, "found None"),
        (True, "found True"),
        (NAN, "found nan"),
        (np.int64(2), Equal(2)),
    ),
    *rows(
        "warm_up", octopus.warm_up, "device",
        ("gpu", "device='gpu' is unknown"),
        (None, "device=None is unknown"),
        ("cuda", no_gpu()),
    ),
    *rows("warm_up", octopus.warm_up, "**", ({"all": True}, python("warm_up"))),
]
