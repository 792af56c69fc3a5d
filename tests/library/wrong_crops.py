"""Wrong frames, boxes and results of `crop_resize`."""

from functools import partial
from types import SimpleNamespace

import numpy as np
from exported import Exported
from wrong_calls import Later, Same, read_only, rows, same, torch

from octopus import NV12, P010, RaggedBatch, crop_resize

FRAME = np.random.default_rng(3).integers(0, 256, (6, 8, 3), np.uint8)
FRAMES = np.stack([FRAME, FRAME[::-1]])
WIDE = np.zeros((1, 40_000, 1), np.uint8)
BOXES = np.array([[1, 1, 5, 4], [0, 0, 8, 6]])
SHAPE = (2, 3, 4, 5)
NAN, INF = np.nan, np.inf
LAST_BITS = 1e-4  # of values up to 255: frames of bytes have arithmetic of their own


crop = partial(crop_resize, frame=FRAME, boxes=BOXES, size=(4, 5), device="cpu")
several = partial(crop, frame=FRAMES)
LUMA, CHROMA = np.zeros((6, 8), np.uint8), np.zeros((3, 8), np.uint8)
DEEP = LUMA.astype(np.uint16), CHROMA.astype(np.uint16)


def nv12(y=LUMA, uv=CHROMA, matrix="bt709", range="limited", **options):
    return crop(frame=NV12(y, uv, matrix=matrix, range=range), **options)


def p010(y=DEEP[0], uv=DEEP[1], **coding):
    return crop(frame=P010(y, uv, **{"matrix": "bt2020", "range": "full", **coding}))


ROWS = [
    *rows("crop_resize", crop, "frame",
        (None, "frame is None, which is what cv2.imread gives for a file that it can't read; pass a NumPy"),
        ("photo.jpg", "frame is a str; octopus.integrations.loader.read decodes files"),
        ([FRAME, FRAME], "a list of frames takes a list of arrays of boxes"), (FRAME[..., :0], "found (6, 8, 0)"),
        (np.zeros((3, 40, 64), np.uint8), "pass frame.transpose(1, 2, 0)"), (FRAME[0, 0], "or (H, W), found (3,)"),
        (np.zeros((17, 40, 80), np.uint8), "with C from 1 to 64, or (H, W), found (17, 40, 80)"),
        (np.zeros((1, 32, 32), np.uint8), "transpose(1, 2, 0). If it has 1 rows, add some below"),
        (torch(lambda t: t.zeros((4, 64, 9), dtype=t.uint8), "small CHW"), "frame.permute(1, 2, 0)"),
        (torch(lambda t: t.zeros((6, 8, 3), dtype=t.float64), "float64"), "for instance with frame.float()"),
        (FRAME.astype(">u2"), "machine's byte order, found >u2"),
        (np.ma.masked_array(FRAME, FRAME > 9), "frame is a masked array"), (np.asfortranarray(FRAME), same()),
        (np.flip(np.flip(FRAME).copy()), same()),
        (torch(lambda t: t.from_numpy(FRAME.copy()).to_sparse(), "sparse"), ".to_dense()"),
        (torch(lambda t: t.ones((6, 8, 3), requires_grad=True), "grad"), "frame requires grad"),
        (torch(lambda t: t.ones((6, 8, 3), dtype=t.bfloat16), "bfloat16"), "bfloat16"),
        (torch(lambda t: t.ones((6, 8, 3), device="meta"), "meta"), "frame lies on meta"),
        (torch(lambda t: t.from_numpy(FRAME.copy()), "tensor"), same()), (read_only(FRAME), same()),
        (np.pad(FRAME, ((0, 0), (0, 3), (0, 0)))[:, :8], same()),
        (Later(lambda: Exported(FRAME), name="DLPack"), same()),
        (np.broadcast_to(FRAME[..., :1], FRAME.shape), same(frame=np.dstack([FRAME[..., :1]] * 3))),
        (RaggedBatch.from_list([FRAME]), "NumPy array"), (FRAME.astype(np.float32), Same({}, LAST_BITS)),
        (FRAME.astype(np.uint16), Same({}, LAST_BITS))),
    *rows("crop_resize", crop, "boxes",
        (None, "boxes is None; pass"), ((box for box in BOXES), "boxes is a generator"),
        ([[1, 1, 5]], "boxes must have shape (N, 4), found (1, 3)"),
        ([[1, 1, 5, 4], [1, 2]], "boxes must be an array, found rows of different length"),
        (BOXES > 2, "boxes must be integers or floats, found bool"),
        (np.ma.masked_array(BOXES, BOXES > 5), "boxes is a masked array"),
        ([[1, 1, NAN, 4]], "box 0 = (1, 1, nan, 4) has a number that is NaN"),
        ([[5, 1, 1, 4]], "box 0 = (5, 1, 1, 4) ends before it begins: boxes are x1, y1, x2, y2"),
        ([[-5, -5, -1, -1]], "the frame, 6 pixels high and 8 wide"),
        (np.zeros((2, 5)), "found (2, 5); leave out what follows the corners: boxes[:, :4]"),
        (torch(lambda t: t.ones((1, 4), requires_grad=True), "grad"), "boxes requires grad"),
        ([], same(boxes=np.empty((0, 4)))), (np.empty((0, 4), np.int16), same(boxes=np.empty((0, 4)))),
        (tuple(map(tuple, BOXES.tolist())), same()), (BOXES.astype(np.float16), same()), (BOXES.astype(">f8"), same()),
        (SimpleNamespace(xyxy=BOXES), same()), (torch(lambda t: t.from_numpy(BOXES), "tensor"), same()),
        ([[-0.3, 1, 5, 4]], same(boxes=[[0, 1, 5, 4]])), (Later(lambda: Exported(BOXES), name="DLPack"), same()),
        ([[-(2**40), -1e30, 2**40, 1e30]], same(boxes=[[0, 0, 8, 6]]))),
    *rows("crop_resize", several, "frame_index",
        (None, "several frames (F, H, W, C) need frame_index"),
        ([0], "frame_index must hold one integer per box, shape (2,)"),
        ([0, 2], "frame_index[1] = 2 but there are 2 frames"), ("01", "frame_index is a str"),
        ([0, None], "found object"), ([-1, 7], "; wrong entries: 2 of 2"),
        (np.ma.masked_array([0, 1], [0, 1]), "frame_index is a masked array"),
        (np.array([0, 1], np.uint8), same(frame_index=np.array([0, 1]))),
        (np.array([0, 1], ">i8"), same(frame_index=np.array([0, 1])))),
    *rows("crop_resize", several, "**",
        ({"frame": np.zeros((2, 3, 32, 32), np.uint8), "frame_index": [0, 1]}, "frame.transpose(0, 2, 3, 1)"),
        ({"frame": FRAMES[..., 0], "frame_index": [0, 1]}, "a single frame takes none"),
        ({"frame": FRAMES[:0], "frame_index": [0, 1]}, "between 1 and"),
        ({"frame_index": [0, 1], "boxes": [[0, 0, 4, 4], [9, 0, 10, 4]]}, "box 1 = (9, 0, 10, 4)")),
    *rows("crop_resize", crop, "out",
        (np.zeros((2, 3, 5, 4), np.float32), "out must be a contiguous float32 array of shape (2, 3, 4, 5)"),
        (np.zeros((*SHAPE[:3], 10), np.float32)[..., ::2], "not contiguous"),
        (read_only(np.zeros(SHAPE, np.float32)), "out is read-only"), ("here", "out is a str"),
        (np.ma.zeros(SHAPE, np.float32), "out is a masked array"), (np.zeros(SHAPE, np.float32), same())),
    *rows("NV12", nv12, "matrix",
        (None, "use one of bt601, bt709, bt2020, as the video's metadata say: there is no default"),
        ("BT709", "matrix='BT709' is unknown")),
    *rows("NV12", nv12, "range",
        (None, "range=None is unknown; use one of limited, full"), ("tv", "range='tv' is unknown")),
    *rows("NV12", nv12, "y",
        (None, "frame.y is None"),
        (LUMA.astype(np.float32), "y of NV12 must be uint8 in the machine's byte order, found float32"),
        (CHROMA.reshape(3, 4, 2), "y of NV12 must have shape (H, W), even sides from 2 to 16777216, found (3, 4, 2)"),
        (LUMA[:, :1, None], "found (6, 1)"),
        (LUMA[:5], "found (5, 8); of a video with odd sides the decoder's planes are one larger"),
        (LUMA[:4], "uv of NV12 must have shape (2, 8) or (2, 4, 2) for y of shape (4, 8), found (3, 8)"),
        (LUMA[::-1], "rows one below the other, found strides (-8, 1) bytes; pass a contiguous copy"),
        (np.ma.masked_array(LUMA, LUMA > 9), "frame.y is a masked array"),
        (torch(lambda t: t.zeros((6, 8), dtype=t.uint8, device="meta"), "meta"), "frame.y lies on meta"),
        (np.pad(LUMA, ((0, 0), (0, 5)))[:, :8], same()), (LUMA[..., None], same()),
        (Later(lambda: Exported(LUMA), name="DLPack"), same())),
    *rows("NV12", nv12, "uv",
        (CHROMA.astype(np.int8), "uv of NV12 must be uint8"),
        (np.zeros((3, 4), np.uint8),
         "uv of NV12 must have shape (3, 8) or (3, 4, 2) for y of shape (6, 8), found (3, 4)"),
        (np.zeros((3, 4, 4), np.uint8)[..., :2], "the values of a row of uv must lie next to each other"),
        (CHROMA.reshape(3, 4, 2), same())),
    *rows("NV12", nv12, "**",
        ({"channels": "BGR"}, 'channels="BGR" is for frames whose pixels have channels, found NV12; leave it out'),
        ({"frame_index": [0, 0]}, "a single frame takes none"),
        ({"boxes": [[9, 1, 12, 4]]}, "the frame, 6 pixels high and 8 wide"),
        ({"mean": [1, 2]}, "mean must be one finite number or 3")),
    *rows("P010", p010, "y", (LUMA, "y of P010 must be uint16 in the machine's byte order, found uint8")),
    *rows("P010", p010, "**", ({"matrix": None}, "matrix=None is unknown"), ({"range": "pc"}, "range='pc' is unknown")),
]  # fmt: skip
