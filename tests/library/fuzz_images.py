"""Random images of any size and layout on the CPU, resized by every function."""

import numpy as np
from cases.images import TOPS, Pictures, called

from octopus import RaggedBatch, images
from octopus.images.spec import FIXED

# Dtype of the images, channels, dtype of the result: a kernel each, and one more where Pillow's rounding is asked for;
# those of the table of cases, since each takes seconds to compile.
FORMS = (
    ("uint8", 3, "float32"), ("uint8", 3, "uint8"), ("uint8", 3, "float16"), ("uint8", 4, "float32"),
    ("uint8", 1, "float32"), ("uint16", 3, "float32"), ("float32", 3, "float32"),
)  # fmt: skip
PILLOW = FORMS[:3]
ORDERS = {1: ("RGB",), 3: ("RGB", "RGB", "BGR"), 4: ("RGB", "RGBA", "BGRA")}  # of channels, by their number


def warm_up(kind):
    for form in FORMS:
        for rounding in ("none", *FIXED) if form in PILLOW else ("none",):
            images.resize([np.zeros((2, 2, form[1]), form[0])], 1, dtype=form[2], rounding=rounding, device="cpu")


def draw(drawn, kind):
    form = source, channels, dtype = drawn.pick(*FORMS)
    sides, count, first = drawn.pick((1, 8, 40, 90), (1, 2, 300)), drawn.pick(1, 2, 3, 5), drawn.few(0.4)
    given = [image_of(drawn, f"image{n}", sides, channels, np.dtype(source), first) for n in range(count)]
    order = drawn.pick(*ORDERS[channels])
    rounding = drawn.pick("none", "uint8", *FIXED) if form in PILLOW or order[3:] else "none"
    options = {"filter": drawn.pick("bilinear", "bicubic", "lanczos", "nearest"), "rounding": rounding, "dtype": dtype}
    options |= {"antialias": drawn.few(0.7) or rounding in FIXED, "source": ("HWC", "CHW")[first], "channels": order}
    operation = drawn.pick("resize", "resize_each", "patch_rows")
    sizes = sizes_of(drawn, operation, count, options)
    by = drawn.pick("call", "plan", *["ragged"] * (len({one.ndim for one in given}) == 1))
    call = Pictures(given, operation, sizes, options)
    out = drawn.array("out", call.right().shape, dtype) if drawn.few(0.7) else None

    def make():
        batch = RaggedBatch.from_list(given) if by == "ragged" else given
        return call.check(called(batch, call, by == "plan", out=out, device="cpu"))

    shown = "; ".join(f"{one.dtype} {one.shape} by {one.strides}" for one in given)
    return f"{operation} to {np.asarray(sizes).tolist()}, {options}, {by}\n{shown}", make


def sizes_of(drawn, operation, count, options):
    """Sizes of the result, and the options that go with them."""
    if operation == "patch_rows":
        options["patch"], options["order"] = drawn.pick(1, 2, 3, 7, 14), drawn.pick("CTPP", "PPC")
        factor = options["patch"] * (2 if options["order"] == "CTPP" else 1)
        sizes = [(factor * drawn.upto(4), factor * drawn.upto(4)) for _ in range(count)]
        if drawn.few(0.3):
            options["max_rows"] = max(h * w for h, w in sizes) // options["patch"] ** 2 + drawn.upto(2, 0)
        return sizes
    options["layout"] = drawn.pick("NCHW", "NHWC")
    if operation == "resize_each":
        return [(drawn.upto(40), drawn.upto(70)) for _ in range(count)]
    if drawn.few(0.3):
        options["crop"], options["shortest"] = "center", drawn.upto(12)
    return drawn.upto(33), drawn.upto(70)


def image_of(drawn, name, sides, channels, dtype, first):
    """An image whose first or last value touches the guard page; rows may be apart, and run backwards."""
    height, width = (drawn.upto(drawn.pick(*sides)) for _ in range(2))
    planes, row = (channels, width) if first else (1, width * channels)
    pitch = row + (drawn.upto(9) if drawn.few(0.3) else 0)
    flat, item = drawn.array(name, (pitch * (height * planes - 1) + row,), dtype), dtype.itemsize
    flat[:] = (drawn.random.random(flat.size) * drawn.pick(1.0, TOPS[dtype.name])).astype(dtype)
    shape, steps = (channels, height, width), (pitch * height * item, pitch * item, item)
    if not first:
        shape, steps = (height, width, channels), (pitch * item, channels * item, item)
    image = np.lib.stride_tricks.as_strided(flat, shape, steps)
    if drawn.few(0.2):
        image = image[..., :: drawn.upto(4)] if first else image[:, :: drawn.upto(4)]
    if channels == 1 and drawn.few(0.5):
        image = image[0] if first else image[..., 0]
    elif drawn.few(0.2):
        image = image[:, ::-1] if first else image[::-1, ::-1]
    return drawn.frozen(image)
