"""Images of different size from files, and in torch's `DataLoader`, where a batch is one tensor.

>>> pictures = read(paths, device="cuda")  # doctest: +SKIP
>>> loader = DataLoader(folder, 32, num_workers=4, collate_fn=ragged, pin_memory=True)  # doctest: +SKIP
>>> for batch in loader:  # doctest: +SKIP
...     pixels = octopus.images.resize(batch.to("cuda", non_blocking=True), 224)
"""

import ctypes
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from octopus import backends
from octopus.arrays.checks import Device, check_choice
from octopus.arrays.pillow import rgb
from octopus.backends.cpu.threads import get_num_threads, share
from octopus.errors import InputError, shown_type
from octopus.images.sources import geometry_of, look
from octopus.images.upload import Packing
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.convert import need

TOGETHER = 64  # files that are decoded at a time
MANY = 4 * TOGETHER  # files from which on a terminal is shown how many are done
EXIF, TURNED = (0x0112, {2: (2,), 3: (1, 2), 4: (1,), 5: (), 6: (2,), 7: (1, 2), 8: (1,)})  # axes that are reversed
PATHS = (str, os.PathLike)
SOURCES = (*PATHS, bytes, bytearray, memoryview)
UNDECODED = RuntimeError, DeprecationWarning  # of torchvision; the latter where warnings are errors
END = b"\xff\xd9"  # of a JPEG that is whole


def read(
    sources: Iterable[Any], device: Device = "cpu", *, decoder: Literal["auto", "pillow"] = "auto",
    errors: Literal["raise", "skip", "none"] = "raise", progress: bool | None = None,
) -> list[Any]:  # fmt: skip
    """Decode images from files, or from bytes, by several threads or on the GPU.

    All that Pillow opens, as RGB: turned upright by its EXIF orientation, transparent pixels on white, as transformers
    5.21 and later makes it of an image that Pillow opened. Of an animation the first frame.

    Parameters
    ----------
    sources : iterable of str, path or bytes
        Files, and contents of files.
    device : {"cpu", "cuda", "cuda:0", ...} or torch.device
        Where the images shall be.
    decoder : {"auto", "pillow"}
        On a GPU "auto" lets nvJPEG (by torchvision) decode JPEG there, in a fraction of the time. It makes of two
        neighbours with one chroma value two of the same colour, where Pillow interpolates: in the images of the study
        `pipelines` pixels differ by up to 37 of 255 levels, by 0.5 on average in the batch that differs most. "pillow"
        gives Pillow's pixels on every device, as "auto" does on a CPU.
    errors : {"raise", "skip", "none"}
        What becomes of a file that can't be decoded: an error; a `UserWarning`, and the others are returned; or the
        same with None in its place. Each names the file.
    progress : bool, optional
        Show how many files are done (by `tqdm`); by default on a terminal, for more than 256 of them.

    Returns
    -------
    list of torch.Tensor, (3, H, W), uint8
        In the order of the sources. Up to 64 of them share a block of memory.

    Raises
    ------
    InputError
        For no files, something that is neither path nor bytes, or the first that can't be decoded: it is not there,
        truncated, of a format that Pillow doesn't know, has more than 8 bits a channel, or more than twice
        `PIL.Image.MAX_IMAGE_PIXELS` (above the limit itself Pillow warns).
    MissingPackageError
        If torch or Pillow can't be imported.
    DeviceError
        If a GPU is asked for and none is usable.
    """
    check_choice("decoder", decoder, ("auto", "pillow"))
    check_choice("errors", errors, ("raise", "skip", "none"))
    torch, pillow = (need("torch", "PyTorch", "pip install torch"), need("PIL.Image", "Pillow", "pip install pillow"))
    need("PIL.ImageOps", "Pillow", "pip install pillow")
    if isinstance(sources, SOURCES) or not isinstance(sources, Iterable):
        raise InputError(f"sources must be a list of files, found {shown_type(sources)}; pass [file]")
    named = list(enumerate(sources))
    if not named:
        raise InputError("there are no files to read: the list is empty")
    for number, source in named:
        if not isinstance(source, SOURCES):
            raise InputError(f"file {number} is {shown_type(source)}; pass a path or the file's bytes")
    gpu = torch.device(device) if backends.resolve(device) == "cuda" else None
    jpeg = _torchvision() if decoder == "auto" else None
    made: list[Any] = []
    with _counted(progress, len(named)) as done:
        for begin in range(0, len(named), TOGETHER):
            files = [_File(pillow, number, source) for number, source in named[begin : begin + TOGETHER]]
            share([file.open for file in files], get_num_threads())
            if jpeg is not None and gpu is not None:
                _decode(partial(jpeg, device=gpu), [file for file in files if file.is_plain_jpeg])
            left = [file for file in files if file.pixels is None and file.error is None]
            share([partial(file.decode, None if gpu else jpeg) for file in left], get_num_threads())
            _place([file for file in files if file.image is not None], gpu)
            made += _found(files, errors)
            done(len(files))
    return made


class _File:
    """A file on its way to an image: its header, then an image of Pillow or a tensor, or an error."""

    def __init__(self, pillow: Any, number: int, source: Any) -> None:
        self._pillow, self._source, self._turn = pillow, source, 1
        self.name = f"file {number} ({source})" if isinstance(source, PATHS) else f"file {number}"
        self.content: Any = None
        self.image: Any = None
        self.pixels: Any = None
        self.error: Exception | None = None

    def open(self) -> None:
        try:
            if isinstance(self._source, PATHS):
                with open(self._source, "rb") as file:
                    self.content = file.read()
            else:
                self.content = bytes(self._source)
            self._opened = self._pillow.open(io.BytesIO(self.content))
            self._turn = self._opened.getexif().get(EXIF, 1)
            if self._opened.mode[0] in "IF":  # which `convert` cuts off at 255
                raise InputError(
                    f"its mode {self._opened.mode} has more than 8 bits; open it with Pillow and bring it to 0 to 255"
                )
        except self._pillow.UnidentifiedImageError:
            self.error = InputError("it is of no format that Pillow knows")
        except Exception as error:  # each format has its own
            self.error = error

    @property
    def is_plain_jpeg(self) -> bool:
        """Whether nvJPEG decodes it: as far as the header tells, and to its end."""
        if self.error is not None:
            return False
        return (
            self._opened.format in ("JPEG", "MPO") and self._opened.mode in ("RGB", "L") and END in self.content[-64:]
        )

    @property
    def tensor(self) -> Any:
        """Its bytes, which torchvision only reads, as a tensor that shares them."""
        count = len(self.content)
        shared = np.ctypeslib.as_array(ctypes.cast(self.content, ctypes.POINTER(ctypes.c_uint8)), (count,))
        return import_module("torch").from_numpy(shared)

    def decode(self, jpeg: Callable[..., Any] | None) -> None:
        """Let torchvision decode it, whose pixels are the same and which holds no lock of Python's, or Pillow."""
        if jpeg is not None and self.is_plain_jpeg:
            with suppress(*UNDECODED):
                self.take(jpeg(self.tensor))
                return
        try:
            upright = self._opened
            if self._turn in TURNED:
                upright = import_module("PIL.ImageOps").exif_transpose(upright)
            upright = rgb(upright)
            upright.load()
            self.image = upright
        except Exception as error:
            self.error = error

    def take(self, pixels: Any) -> None:
        """Have it decoded, lying as it was stored."""
        if self._turn in TURNED:
            pixels = pixels.transpose(1, 2) if self._turn > 4 else pixels
            pixels = pixels.flip(TURNED[self._turn])
        self.pixels = pixels


def _torchvision() -> Callable[..., Any] | None:
    """What decodes JPEG; None if this torchvision doesn't, which has deprecated it in favour of TorchCodec."""
    try:
        module = import_module("torchvision.io")
        return partial(module.decode_jpeg, mode=module.ImageReadMode.RGB)
    except (ImportError, AttributeError):
        return None


def _decode(jpeg: Callable[..., Any], files: list[_File]) -> None:
    """Let nvJPEG decode what it can; Pillow has to do with the rest."""
    try:
        for file, pixels in zip(files, jpeg([file.tensor for file in files]) if files else [], strict=True):
            file.take(pixels)
    except UNDECODED:  # which doesn't tell the file
        if len(files) > 1:
            for file in files:
                _decode(jpeg, [file])


def _place(files: list[_File], gpu: Any) -> None:
    """Make tensors of what Pillow decoded: one block of memory, and one upload."""
    if not files:
        return
    batch = ragged([file.image for file in files])
    for file, pixels in zip(files, batch if gpu is None else batch.to(gpu), strict=True):
        file.image, file.pixels = None, pixels.permute(2, 0, 1)


def _found(files: list[_File], errors: str) -> list[Any]:
    for file in files:
        if file.error is not None:
            text = f"{file.name} can't be decoded: {str(file.error).rstrip('.')}"
            if errors == "raise":
                raise InputError(f'{text}; errors="skip" goes on without it') from file.error
            warnings.warn(text, UserWarning, stacklevel=3)
    return [file.pixels for file in files if file.error is None or errors == "none"]


@contextmanager
def _counted(progress: bool | None, count: int) -> Iterator[Callable[[int], Any]]:
    """What is told how many more files are done, and shows it if that is wanted."""
    if progress is None:
        progress = count > MANY and sys.stderr.isatty() and find_spec("tqdm") is not None
    if not progress:
        yield lambda files: None
        return
    with need("tqdm", "tqdm", "pip install tqdm").tqdm(total=count, unit="file") as bar:
        yield bar.update


def ragged(images: Sequence[Any], source: str | None = None) -> RaggedBatch:
    """A `collate_fn` for images of different size, which copies each image once.

    From a worker the batch reaches the loader's process as one piece of shared memory. It has `pin_memory()`, which the
    loader calls, and `to(device)`, and `octopus.images` takes it as it is, on either side.

    Parameters
    ----------
    images : sequence of arrays, or of PIL.Image.Image
        On the host, as of `octopus.images.resize`: uint8, uint16 or float32, all of one dtype and number of channels;
        of NumPy, torch or Pillow, whatever their strides.
    source : {"HWC", "CHW"}, optional
        As of `octopus.images.resize`: for images of so few pixels that channels can't be told from rows or columns.

    Returns
    -------
    RaggedBatch
        Items in the order and of the shapes of the images; `values` is a tensor of torch on the host.

    Raises
    ------
    InputError
        For no images, or such as `octopus.images` wouldn't take; names the first that is wrong. For images on a GPU,
        and for (H, W) beside (H, W, C).
    """
    import torch

    found = look(images)
    geometry = geometry_of(found, source)
    if found.model.device != "cpu":
        raise InputError(
            "images of a DataLoader must lie on the host, found a GPU's; move the batch when it comes: "
            "batch.to('cuda', non_blocking=True)"
        )
    shapes = list(map(tuple, found.shapes))
    odd = next((shape for shape in shapes if len(shape) != len(shapes[0])), None)
    if odd:
        raise InputError(
            f"images of a batch all have two dimensions or all three, found {shapes[0]} beside {odd}; add "
            "an axis of one channel"
        )
    packing, dtype = Packing(found, geometry, as_they_lie=False), getattr(torch, geometry.dtype)
    # Not in shared memory at once: torch moves a batch there on a thread beside the one that decodes the next.
    values = torch.empty(packing.nbytes // dtype.itemsize, dtype=dtype)
    packing.copy(found, values.numpy().view(np.uint8))
    return RaggedBatch.from_arrays(values, shapes)


__all__ = ["ragged", "read"]
