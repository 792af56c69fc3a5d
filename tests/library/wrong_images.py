"""Wrong calls of `octopus.images`."""

from functools import partial

import numpy as np
from exported import Exported
from wrong_calls import NO_GPU, TOO_MUCH, Equal, Later, python, read_only, rows, same, torch

from octopus import RaggedBatch, images
from octopus.images import ImagePlan

NAN, INF = np.nan, np.inf
TALL = np.arange(9 * 7 * 3, dtype=np.uint8).reshape(9, 7, 3)
WIDE = TALL.reshape(7, 9, 3) + np.uint8(5)
IMAGES = [TALL, WIDE]
SIZES = [[4, 8], [8, 4]]
BATCH = RaggedBatch.from_list(IMAGES)
FLOATS = [image / np.float32(255) for image in IMAGES]
LINE = [np.zeros((1, 5, 1), np.uint8)]
SHARED = np.zeros((2, 3, 4, 5), np.float32)


class Elsewhere:
    """On a GPU, flipped, and exported as CuPy does by DLPack (cupy#10172)."""

    __cuda_array_interface__ = {  # noqa: RUF012
        "shape": (4, 5, 3), "typestr": "|u1", "data": (64, False), "version": 3, "strides": (15, 3, 2 - 2**63),
    }  # fmt: skip


def plan(operation="resize", image=TALL, max_images=2, sizes=None, given=IMAGES, out=None, **options):
    defaults = {"size": (4, 5)} if operation == "resize" else {}
    return ImagePlan(operation, image, max_images, **defaults, **options).run(given, sizes, out=out)


resize = partial(images.resize, images=IMAGES, size=(4, 5))
each = partial(images.resize_each, images=IMAGES, sizes=SIZES)
patches = partial(images.patch_rows, images=IMAGES, sizes=SIZES, patch=2)
smart, fit = (partial(rule, sizes=[[1080, 1920]]) for rule in (images.smart_sizes, images.fit_sizes))
planned_rows = partial(plan, "patch_rows", sizes=SIZES, result_rows=16, patch=2)
planned_each = partial(plan, "resize_each", sizes=SIZES, result_pixels=64)
ROWS = [
    *rows("images.resize", resize, "images",
        ([], "there are no images: the list is empty"),
        (None, "images must be a list of images, an array or a RaggedBatch, found None"), (TALL, same(images=[TALL])),
        (np.stack([TALL, TALL]), same(images=[TALL, TALL])),
        (np.zeros(3), "an array or a RaggedBatch, found an ndarray"), ([None], "image 0 is None"),
        ([TALL, [[1, 2]]], "image 1 is a list"), ([TALL, TALL[0, 0]], "found image 1 of (3,)"),
        ([TALL, TALL[:0]], "image 1 of shape (0, 7, 3): sides must lie between 1 and 16777216 pixels"),
        ([TALL[:, :0]], "image 0 of shape (9, 0, 3): sides must lie"),
        ([np.lib.stride_tricks.as_strided(LINE[0], (2**24 + 1, 5, 1), (0, 1, 1))], "sides must lie between"),
        ([TALL, TALL[..., :1]], "image 1 of shape (9, 7, 1): it has 1 channel and image 0 has 3"),
        ([TALL[..., :2]], "image 0 of shape (9, 7, 2): channels must be 1, 3 or 4"),
        ([np.zeros((9, 7, 5), np.uint8)], "channels must be 1, 3 or 4, last or first"),
        ([TALL, FLOATS[1]], "image 0 of uint8 and image 1 of float32"),
        ([TALL.astype(np.int16)], "images must be uint8, uint16 or float32 in the machine's byte order, found int16"),
        ([np.ma.masked_array(TALL, TALL > 3)], "image 0 is a masked array"),
        ([np.frombuffer(bytes(4 * 9 * 7 + 1), np.uint8)[1:].view(np.float32).reshape(9, 7)], "at multiples of 4 bytes"),
        (RaggedBatch.from_offsets(np.zeros(8, np.uint8), [0, 8]), "found sequences"),
        (RaggedBatch.from_arrays(np.zeros(0, np.uint8), np.zeros((0, 3), int)), "the batch is empty"),
        (RaggedBatch.from_arrays(np.zeros(8, np.uint8), [[2, 2, 2, 1]]), "items of 4 dimensions"),
        (RaggedBatch.from_arrays(np.zeros(8, np.uint8), [[2, 2, 2]]), "channels must be 1, 3 or 4"),
        (torch(lambda t: [t.zeros(3, 4, 4, requires_grad=True)], "grad"), "image 0 requires grad"),
        (torch(lambda t: [t.zeros(3, 4, 4), t.zeros(3, 4, 4, requires_grad=True)], "grad1"), "image 1 requires grad"),
        (torch(lambda t: [t.zeros(3, 4, 4, dtype=t.uint8).to_sparse()], "sparse"), "image 0 is a tensor of the layout"),
        (torch(lambda t: [t.zeros(3, 4, 4, dtype=t.bfloat16)], "bfloat16"), "bfloat16"),
        (torch(lambda t: [t.zeros(3, 4, 4, device="meta")], "meta"), "image 0 lies on meta"),
        (torch(lambda t: [TALL, t.zeros(3, 4, 4)], "mixed"), "image 0 of uint8 and image 1 of float32"),
        ([Elsewhere()], "image 0 of shape (4, 5, 3) has impossible strides of (15, 3, -9223372036854775806) bytes"),
        ([Exported(TALL.astype("U1"))], "image 0 can't be read by DLPack: "), (tuple(IMAGES), same()),
        ([TALL[::-1][::-1], WIDE.copy()[:, ::-1][:, ::-1]], same()), ([read_only(TALL), WIDE], same()),
        ([image.transpose(2, 0, 1) for image in IMAGES], same()), ([TALL, WIDE.transpose(2, 0, 1)], same()),
        (BATCH, same()), (Later(lambda t: [t.from_numpy(image) for image in IMAGES], "torch", "tensors"), same())),
    *rows("images.resize", resize, "size",
        (0, "size must be (height, width) in positive integers"), ("4x5", "found '4x5'"),
        ((70_000, 70_000), "more than 2**31 - 1 values"), (np.array([4, 5]), same())),
    *rows("images.resize", resize, "**",
        ({"filter": "cubic"}, "filter='cubic' is unknown; use one of nearest, bilinear, bicubic, lanczos"),
        ({"filter": None}, "filter=None is unknown"), ({"antialias": 1}, "antialias must be True or False, found 1"),
        ({"rounding": "floor"}, "rounding='floor' is unknown; use one of none, uint8, pillow"),
        ({"rounding": True}, "rounding=True is unknown"),
        ({"rounding": "uint8", "images": FLOATS}, 'rounding="uint8" makes uint8 of what is resized, but the images'),
        ({"rounding": "pillow", "images": FLOATS}, "but the images are float32"),
        ({"rounding": "torch", "antialias": False}, 'rounding="torch" is of filters that antialias'),
        ({"rounding": "pillow", "antialias": False}, 'rounding="pillow" is of filters that antialias'),
        ({"dtype": "float64"}, "dtype='float64' is unknown; use one of float32, float16, bfloat16, uint8"),
        ({"dtype": None}, "dtype=None is unknown"),
        ({"dtype": "bfloat16"}, "dtype=bfloat16 makes tensors of torch, but the arrays are of numpy"),
        ({"layout": "CHW"}, "layout='CHW' is unknown; use one of NCHW, NHWC"),
        ({"source": "NHWC"}, "source='NHWC' is unknown; use one of HWC, CHW"),
        ({"source": "CHW"}, "image 0 of shape (9, 7, 3): channels must be 1, 3 or 4"),
        ({"channels": "GBR"}, "channels='GBR' is unknown; use one of RGB, BGR, RGBA, BGRA"),
        ({"channels": "RGBA"}, 'channels="RGBA" is for images of 4 channels, found 3'),
        ({"channels": "BGR", "images": LINE}, 'channels="BGR" is for images of 3 channels, found 1'),
        ({"return_transform": True}, "is for letterbox=True"),
        ({"letterbox": "yes"}, "letterbox must be True or False"),
        ({"letterbox": True, "crop": "center"}, "ask for one of them"),
        ({"crop": "centre"}, "crop='centre' is unknown; use one of center"),
        ({"crop": "center"}, 'crop="center" to 4x5 needs shortest='),
        ({"crop": "center", "shortest": 0}, "shortest must be a whole number"),
        ({"crop": "center", "shortest": 4.5}, "shortest must be a whole number"),
        ({"crop": "center", "shortest": 2**23, "images": LINE}, "image 0 would be 41943040 pixels long"),
        ({"shortest": 4}, 'shortest=4 needs crop="center"'), ({"pad_value": 3}, "nothing is padded with it"),
        ({"letterbox": True, "pad_value": [1, 2]}, "pad_value must be one finite number or 3"),
        ({"letterbox": True, "pad_value": 1e30, "std": 1e-10}, "leaves the range of float32 once normalised"),
        ({"mean": [1, 2]}, "mean must be one finite number or 3"), ({"std": 0}, "std must be positive, found"),
        ({"scale": 0}, "scale must be positive, found"), ({"scale": INF}, "scale must be one finite number or 3"),
        ({"std": 1e-300}, "leave the range of float32"),
        ({"stream": 0}, "stream is of a GPU but this call works on the CPU"),
        ({"device": "gpu"}, "device='gpu' is unknown"), ({"device": "cuda"}, NO_GPU),
        ({"images": [TALL] * 1000, "size": 20_000}, TOO_MUCH._replace(words="on the host for the result")),
        ({"sizes": SIZES}, python("unexpected keyword argument 'sizes'")), ({"device": "cpu"}, same()),
        ({"mean": [0, 0, 0], "std": 1, "scale": np.ones((3, 1, 1))}, same()), ({"dtype": np.float32}, same()),
        ({"channels": "BGR", "images": [image[..., ::-1] for image in IMAGES]}, same())),
    *rows("images.resize", resize, "out",
        (np.empty((2, 3, 5, 4), np.float32), "out must be a contiguous float32 array of shape (2, 3, 4, 5) on cpu"),
        (np.empty((2, 3, 4, 10), np.float32)[..., ::2], "not contiguous"), (read_only(SHARED), "out is read-only"),
        ([1, 2], "out is a list"),
        (torch(lambda t: t.empty(2, 3, 4, 5, requires_grad=True), "grad"), "requires one; pass it with .detach()"),
        (np.empty((2, 3, 4, 5), np.float32), same())),
    *rows("images.resize", resize, "**",
        ({"images": [SHARED[0, 0]], "size": (1, 1), "out": SHARED[:1, :1, :1, :1]},
         "out lies in the memory of image 0"),
        ({"images": [FLOATS[0], SHARED[1, 2, ::-1]][1:], "size": 1,
          "out": SHARED.reshape(-1)[119:].reshape(1, 1, 1, 1)},
         "out lies in the memory of image 0, which is read while that is written"),
        ({"images": [SHARED[1, 0]], "size": (1, 1), "out": SHARED[:1, :1, :1, :1]},
         Equal(np.zeros((1, 1, 1, 1), np.float32)))),
    *rows("images.resize_each", each, "sizes",
        (None, "sizes must be an integer array of 2 dimension(s)"),
        ([4, 8], "sizes must be an integer array of 2 dimension(s)"),
        ([[4, 8]], "sizes must have shape (2, 2), a height and width for each image, found (1, 2)"),
        ([[4, 8], [8]], "sizes must be an integer array on the host"),
        ([[4, 8], [0, 4]], "sizes[1] = (0, 4): sides must lie between 1 and 16777216 pixels"),
        ([[4, 8], [2**25, 4]], "sizes[1] = (33554432, 4)"), ([[2**24, 2**10], [8, 4]], TOO_MUCH),
        (np.array(SIZES, np.uint8), same()), (torch(lambda t: t.tensor(SIZES), "tensor"), same())),
    *rows("images.resize_each", each, "**",
        ({"dtype": "bfloat16"}, "a RaggedBatch can't hold bfloat16; ask for float32 or float16"),
        ({"letterbox": True}, python("unexpected keyword argument 'letterbox'")),
        ({"out": np.zeros(3, np.float32)}, "out must be a contiguous float32 array of shape (192,) on cpu"),
        ({"out": np.empty(192, np.float32)}, same())),
    *rows("images.patch_rows", patches, "sizes",
        ([[4, 8], [8, 6]], "sizes[1] = (8, 6): with these patches sides must be multiples of 4 (patch * merge)"),
        ([[4, 8], [8, 4], [4, 4]], "sizes must have shape (2, 2)"),
        ([[0, 8], [8, 4]], "sizes[0] = (0, 8): sides must lie between"),
        ([[2**24, 2**11], [2**11, 4]], "rows are more than an int32 counts")),
    *rows("images.patch_rows", patches, "**",
        ({"patch": 0}, "patch must be an integer from 1 to 4096, found 0"),
        ({"patch": 2.0}, "patch must be an integer from 1 to 4096, found 2.0"),
        ({"merge": -1}, "merge must be an integer from 1 to 4096, found -1"),
        ({"temporal": True}, "temporal must be an integer from 1 to 4096, found True"),
        ({"temporal": 2, "order": "PPC"}, 'order="PPC" has one copy of a patch in its row, found temporal=2'),
        ({"order": "CPP"}, "order='CPP' is unknown; use one of CTPP, PPC"),
        ({"images": FLOATS}, "makes uint8 of what is resized, but the images are float32"),
        ({"row_multiple": 0}, "row_multiple must be an integer from 1 to 4096, found 0"),
        ({"dtype": "int8", "scale": 255}, "dtype=int8 holds bytes less 128, of patch rows that are not normalised"),
        ({"max_rows": 0}, "max_rows must be a whole number"),
        ({"max_rows": 4}, "image 0 has 8 rows, more than max_rows=4; ask for smaller sizes, or more"),
        ({"max_rows": 2**30}, "2,147,483,648 rows are more than an int32 counts"),
        ({"dtype": "bfloat16"}, "bfloat16 makes tensors of torch"),
        ({"out": np.empty((16, 24), np.float16)}, "out must be a contiguous float32 array of shape (16, 24) on cpu"),
        ({"merge": 2, "temporal": 2}, same()), ({"out": np.empty((16, 24), np.float32)}, same()),
        ({"row_multiple": 32, "out": np.empty((16, 24), np.float32)}, "float32 array of shape (16, 32) on cpu")),
    *rows("images.smart_sizes", smart, "sizes",
        (None, "sizes must be an integer array of 2 dimension(s)"),
        ([[1080, 1920, 3]], "sizes must have shape (N, 2), found (1, 3)"), ([[1080, 0]], "sizes[0] = (1080, 0)"),
        ([[28, 28], [10, 2010]], "has sides of a ratio of 201.0, and the rule refuses more than 200"),
        ([[10, 2000]], Equal(np.array([[28, 812]])))),
    *rows("images.smart_sizes", smart, "**",
        ({"factor": 0}, "factor must be a positive integer, found 0"),
        ({"min_pixels": -1}, "min_pixels must be a positive integer"),
        ({"max_pixels": None}, "max_pixels must be a positive integer, found None"),
        ({"min_pixels": 10, "max_pixels": 9}, "min_pixels 10 must not be more than max_pixels 9")),
    *rows("images.fit_sizes", fit, "sizes",
        (None, "sizes must be an integer array of 2 dimension(s)"),
        ([[1080, 1920, 3]], "sizes must have shape (N, 2), found (1, 3)"), ([[1080, 0]], "sizes[0] = (1080, 0)"),
        ([[20, 30]], Equal(np.array([[208, 304]])))),
    *rows("images.fit_sizes", fit, "**",
        ({"patch": 0}, "patch must be a positive integer, found 0"),
        ({"max_rows": 2.5}, "max_rows must be a positive integer, found 2.5")),
    *rows("images.ImagePlan", plan, "**",
        ({"operation": "crop"}, "operation='crop' is unknown; use one of resize, resize_each, patch_rows"),
        ({"max_images": 0}, "max_images must be a whole number"), ({"sizes": SIZES}, "pass no sizes"),
        ({"max_images": 1}, "the plan is for 1 images, found 2; make a larger plan"),
        ({"image": None}, "image 0 is None"),
        ({"given": FLOATS}, "(library, side, dtype, channels) ('numpy', 'cpu', 'uint8', 3), found ('numpy', "),
        ({"given": []}, "there are no images"),
        ({"result_rows": 4}, "a plan of resize with these options doesn't take result_rows"),
        ({"result_pixels": 4}, "doesn't take result_pixels"),
        ({"source_pixels": 4}, "doesn't take source_pixels, which is for images on the host that a GPU works on"),
        ({"allocate": False}, "this plan was made with allocate=False and has no memory of its own; pass out="),
        ({"device": "cuda"}, NO_GPU), ({"stream": 0}, "stream is of a GPU"), ({"max_images": 2**31 - 1}, TOO_MUCH),
        ({"sise": 4}, "an option of resize='sise' is unknown; use one of filter,"),
        ({"out": np.empty((2, 3, 4, 4), np.float32)}, "out must be a contiguous float32 array of shape (2, 3, 4, 5)"),
        ({"image": IMAGES}, same()), ({"image": BATCH, "given": BATCH}, same()),
        ({"allocate": False, "out": np.empty((2, 3, 4, 5), np.float32)}, same())),
    *rows("images.ImagePlan", planned_rows, "**",
        ({"result_rows": None}, "a plan of patch_rows with these options needs result_rows"),
        ({"result_rows": 15}, "the plan has room for 15 rows, found 16; make a larger plan"),
        ({"max_rows": 8}, "doesn't take result_rows"), ({"sizes": None}, "sizes must be an integer array"),
        ({"sizes": [[4, 8]]}, "sizes must have shape (2, 2)"), ({"result_rows": 20}, same())),
    *rows("images.ImagePlan", planned_each, "**",
        ({"result_pixels": None}, "a plan of resize_each with these options needs result_pixels"),
        ({"result_pixels": 63}, "the plan has room for 189 values, found 192; make a larger plan"),
        ({"result_pixels": 99}, same())),
    *rows("images.ImagePlan.update", lambda: ImagePlan("resize", TALL, 2, size=4).update(IMAGES), "**",
        ({}, "no run of this plan has been captured in a graph")),
]  # fmt: skip
