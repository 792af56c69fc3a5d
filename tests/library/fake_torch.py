"""Enough of torch to take nested tensors apart where it isn't installed; its tensors on a GPU refuse to be read."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

jagged, strided = "torch.jagged", "torch.strided"


class Dtype:
    """Of a tensor; its text is what `octopus.arrays.views` reads."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


dtype_of = cache(Dtype)  # one object for each, as torch has them


class Tensor:
    """A tensor on memory of NumPy. On "cuda:0" that stands for the GPU's, and whoever reads it fails."""

    is_nested = requires_grad = False

    def __init__(self, array: Any, device: str = "cpu") -> None:
        self.array = np.asarray(array)
        self.device = SimpleNamespace(type=device.partition(":")[0], text=device)
        self.shape, self.ndim = self.array.shape, self.array.ndim
        self.dtype = dtype_of(self.array.dtype.name)
        self.is_cuda = self.device.type == "cuda"

    def _made(self, array: np.ndarray) -> Tensor:
        return Tensor(array, self.device.text)

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def get_device(self) -> int:
        return int(self.device.text.partition(":")[2])

    def numel(self) -> int:
        return self.array.size

    def detach(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        assert not self.is_cuda, "the host reads memory of the GPU"
        return self.array

    def cpu(self) -> Tensor:
        return Tensor(self.array.copy()) if self.is_cuda else self

    def to(self, device: Any) -> Tensor:
        return self if device.text == self.device.text else Tensor(self.array.copy(), device.text)

    def long(self) -> Tensor:
        return self if self.dtype.name == "int64" else self._made(self.array.astype(np.int64))

    def reshape(self, *shape: Any) -> Tensor:
        return self._made(self.array.reshape(*shape))

    def view(self, *shape: Any) -> Tensor:
        return self._made(self.array.view(shape[0].name)) if isinstance(shape[0], Dtype) else self.reshape(*shape)

    def __mul__(self, factor: int) -> Tensor:
        return self._made(self.array * factor)

    def __getitem__(self, index: Any) -> Tensor:
        return self._made(self.array[index])

    def __len__(self) -> int:
        return self.shape[0]


class Nested(Tensor):
    """A nested tensor; `...` stands for the side of which torch knows no number."""

    is_nested = True

    def __init__(
        self, values: Tensor, offsets: Tensor, lengths: Any = None, axis: int = 1, layout: str = jagged
    ) -> None:
        super().__init__(values.array, values.device.text)
        self.parts, self.layout = (values, offsets, lengths), layout
        inner = list(values.shape[1:])
        self.shape = (len(offsets) - 1, *inner[: axis - 1], ..., *inner[axis - 1 :])
        self._maybe_min_seqlen = self._maybe_max_seqlen = None

    def values(self) -> Tensor:
        return self.parts[0]

    def offsets(self) -> Tensor:
        return self.parts[1]

    def lengths(self) -> Any:
        return self.parts[2]


def from_jagged(values: Tensor, offsets: Tensor, *, min_seqlen: Any, max_seqlen: Any) -> Nested:
    assert values.device.text == offsets.device.text
    made = Nested(values, offsets)
    made._maybe_min_seqlen, made._maybe_max_seqlen = min_seqlen, max_seqlen
    return made


def from_numpy(array: np.ndarray) -> Tensor:
    """`torch.from_numpy`, which takes fewer dtypes than NumPy has."""
    if array.dtype.itemsize > 8:
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
    return Tensor(array)


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    """`torch.empty`, filled with what nobody expects."""
    return Tensor(np.full(shape, math.pi if dtype.name.startswith("f") else 77, dtype.name), device.text)


def cat(tensors: list[Tensor]) -> Tensor:
    """`torch.cat` along the first axis."""
    return Tensor(np.concatenate([tensor.array for tensor in tensors]), tensors[0].device.text)


def device(kind: str, ordinal: int | None = None) -> Any:
    return SimpleNamespace(type=kind, text=kind if ordinal is None else f"{kind}:{ordinal}")


nested = SimpleNamespace(nested_tensor_from_jagged=from_jagged)
bool, float16, float32, float64, int32, int64, uint8 = map(
    dtype_of, ("bool", "float16", "float32", "float64", "int32", "int64", "uint8")
)
