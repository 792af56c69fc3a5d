"""Images of Pillow: where their pixels lie, read without a copy.

`numpy.asarray` of an image runs Pillow's encoder on one thread, 64 KiB at a time: 5 ms for 1080p. Its memory is rows in
blocks of up to 16 MiB, and the documented `Image.getim()` leads to a struct with the address of each row. That struct
has had two layouts so far. Each image is compared with what it says of itself, and one that fits neither layout is read
by `numpy.asarray`. (`__arrow_c_array__` gives the address of an image of one block alone: of no photograph of 12
megapixels, and of none before Pillow 11.3.)
"""

import ctypes
import io
import struct
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.backends.cpu.threads import get_num_threads, share
from octopus.errors import InputError

# Of each mode: channels, 0 for (H, W), and bytes of a pixel. Pillow stores RGB in four bytes, too.
MODES = {"RGB": (3, 4), "RGBA": (4, 4), "RGBX": (4, 4), "L": (0, 1), "I;16": (0, 2)}

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_MAGIC = b"Pillow Imaging"
_UINT8, _UINT16 = np.dtype(np.uint8), np.dtype(np.uint16)
# Width, height; where the addresses of rows are, of rows of bytes, of words, of either; bytes of a pixel and of a row.
# First since Pillow 12, where the mode is a number, then as before, where it is a text.
_LAYOUTS = struct.Struct("=16x2i8x3q16x2i"), struct.Struct("=20x2i12x3q16x2i")


class DecodeError(InputError):
    """An image can't be decoded; the cause is its decoder's own error."""


class Raster(NamedTuple):
    """Where an image of Pillow lies, (H, W, C) or (H, W), of uint8, or uint16 for the mode I;16; `owner` keeps it.
    `runs` are addresses and bytes of pieces of whole rows, one after the other, if the rows are not all one step
    apart."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    owner: Any
    runs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def array(self) -> NDArray[Any]:
        """The pixels as an array, read-only: this memory, or a copy of several runs."""
        if self.runs is None:
            return np.asarray(_Memory(self))
        joined = np.empty(self.runs[1].sum(), np.uint8)
        copies, end = [], joined.ctypes.data
        for pointer, size in zip(*(numbers.tolist() for numbers in self.runs), strict=True):
            copies.append(partial(ctypes.memmove, end, pointer, size))
            end += size
        share(copies, get_num_threads())
        joined.flags.writeable = False
        return np.ndarray(self.shape, self.dtype, joined, 0, self.strides)


class _Memory:
    def __init__(self, raster: Raster) -> None:
        self.owner = raster.owner
        self.__array_interface__ = {
            "version": 3, "shape": raster.shape, "strides": raster.strides, "data": (raster.pointer, True),
            "typestr": raster.dtype.str,
        }  # fmt: skip


def is_pillow(kind: type) -> bool:
    """Whether a type is that of images of Pillow, which need not be installed."""
    image = getattr(sys.modules.get("PIL.Image"), "Image", None)  # None while another thread imports it
    return image is not None and issubclass(kind, image)


def rgb(image: Any, on_white: bool = True) -> Any:
    """An image as RGB: what is transparent lies on white, or else the channel that says so is left out."""
    if on_white and is_transparent(image):
        module = sys.modules["PIL.Image"]
        white = module.new("RGBA", image.size, (255, 255, 255, 255))
        image = module.alpha_composite(white, image.convert("RGBA"))
    return image if image.mode == "RGB" else image.convert("RGB")


def is_transparent(image: Any) -> bool:
    plain = image.mode in ("RGB", "L") or "A" not in image.getbands()
    return not plain or image.info.get("transparency") is not None


def rasters(images: Sequence[Any], name: str = "image", numbers: Sequence[int] | None = None) -> list[Raster]:
    """Where images of Pillow lie. Files that were opened and not read yet are decoded, by several threads. `InputError`
    has the name, and if they are part of a list the number, of one that is closed, empty, can't be decoded or has a
    mode that is none of `MODES`."""
    decode(images, name, numbers)
    found = []
    for place, image in enumerate(images):
        try:
            found.append(_look(image))
        except (ValueError, OSError) as error:
            raise InputError(f"{_named(name, numbers, place)} {error}") from error
    rows = np.frombuffer(b"".join([image[-1] for image in found]), np.int64)  # addresses
    heights = np.array([image[0][0] for image in found])
    ends = heights.cumsum()
    steps = np.diff(rows, append=0)
    first = np.where(heights > 1, steps[ends - heights], 0)
    odd = steps != first.repeat(heights)
    odd[ends - 1] = False  # behind the last row of an image
    broken = set(np.arange(len(found)).repeat(heights)[odd].tolist()) if odd.any() else ()
    made = []
    places = zip(found, (ends - heights).tolist(), first.tolist(), rows[ends - heights].tolist(), strict=True)
    for number, ((shape, (channels, pixel), owner, _), begin, step, pointer) in enumerate(places):
        line = shape[1] * pixel
        runs = _runs(rows[begin : begin + shape[0]], line) if number in broken else None
        inner = (pixel, 1) if channels else (pixel,)
        strides = (line if runs or shape[0] == 1 else step, *inner)
        made.append(Raster(pointer, shape, strides, _UINT16 if pixel == 2 else _UINT8, owner, runs))
    return made


def decode(images: Sequence[Any], name: str = "image", numbers: Sequence[int] | None = None) -> None:
    """Read the pixels of images that have none yet. Those of one file are read one after the other, and so are those
    whose file objects may share one file, such as members of an archive."""
    files: dict[int, dict[int, tuple[Any, int]]] = {}
    for place, image in enumerate(images):
        if getattr(image, "tile", None) or getattr(image, "_im", image) is None:
            file = getattr(image, "fp", None)
            alone = type(file) is io.BytesIO or (type(file) is io.BufferedReader and type(file.raw) is io.FileIO)
            files.setdefault(id(file) if alone else 0, {})[id(image)] = image, place

    def load(file: Sequence[tuple[Any, int]]) -> None:
        for image, place in file:
            try:
                image.load()
            except Exception as error:  # each decoder has its own, and a closed file one without words
                why = str(error) or "its file is closed; call image.load() before that"
                raise DecodeError(f"{_named(name, numbers, place)} can't be decoded: {why}") from error

    if files:
        share([partial(load, tuple(file.values())) for file in files.values()], get_num_threads())


def _named(name: str, numbers: Sequence[int] | None, place: int) -> str:
    return name if numbers is None else f"{name} {numbers[place]}"


def _look(image: Any) -> tuple[tuple[int, ...], tuple[int, int], Any, bytes]:
    """Shape, channels and bytes of a pixel, what keeps the memory, and the addresses of all rows as bytes."""
    try:
        owner = image.getim()
    except (ValueError, OSError) as error:
        raise ValueError(f"can't be read: {error}; pass an image that is open") from error
    known, (width, height) = MODES.get(image.mode), image.size
    if known is None:
        remedy = 'numpy.asarray(image).astype("float32")' if image.mode[0] in "IF" else 'image.convert("RGB")'
        raise ValueError(
            f"has Pillow's mode {image.mode}, but only {', '.join(MODES)} are read as they are; pass {remedy}"
        )
    if not (width and height):
        raise ValueError(f"is empty: {width}x{height} pixels (width x height)")
    channels, pixel = known
    address = _pointer_of(owner, _MAGIC)
    for layout in _LAYOUTS:
        *size, of_bytes, of_words, table, each, line = layout.unpack(ctypes.string_at(address, layout.size))
        right = size == [width, height] and each == pixel and line == width * pixel
        if right and (pixel == 2 or table == (of_bytes if pixel == 1 else of_words)):
            rows = ctypes.string_at(table, 8 * height)
            break
    else:  # a Pillow whose struct is another: right, and slower
        owner = np.asarray(image)
        pixel, channels = owner.strides[1], owner.ndim > 2 and owner.shape[2]
        rows = (owner.ctypes.data + owner.strides[0] * np.arange(height)).tobytes()
    shape = (height, width, channels) if channels else (height, width)
    return shape, (channels, pixel), owner, rows


def _runs(rows: NDArray[np.int64], line: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Addresses and bytes of rows that follow each other without a gap."""
    begins = np.flatnonzero(np.diff(rows, prepend=0) != line)
    return rows[begins], np.diff(begins, append=len(rows)) * line
