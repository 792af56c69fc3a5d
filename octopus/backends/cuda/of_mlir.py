"""numba-cuda-mlir, numba-cuda's successor, as the compiler of the kernels: what `language` asks of one."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

from numba_cuda_mlir import cuda, tools
from numba_cuda_mlir import types as types
from numba_cuda_mlir._mlir.dialects import arith, llvm
from numba_cuda_mlir._mlir.extras import types as of
from numba_cuda_mlir.cuda import libdevice as library
from numba_cuda_mlir.extending import intrinsic as intrinsic
from numba_cuda_mlir.extending import refresh_registries
from numba_cuda_mlir.lowering_utilities import convert, memref_data_pointer

SIMULATED, libdevice = False, library
device = cuda.jit(device=True, inline="never")  # by LLVM alone: its own inliner loses names of closures
REGISTERS = {"int32": of.i32, "uint32": of.i32, "int64": of.i64, "float32": of.f32, "float64": of.f64}
# Device functions stand in the PTX although the kernel holds them already.
_FUNCTION = re.compile(r"^\.visible \.func .*?^\}\n", re.MULTILINE | re.DOTALL)
DYNAMIC = -(1 << 31)  # in the place of an index of `getelementptr`


def generator(text: str, result: Any, arguments: Sequence[Any], constraints: str, volatile: bool) -> Callable:
    """What makes code of an instruction; see `language.instruction`, whose shapes these are."""

    def generate(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        values, count = list(_flat(builder, args, arguments)), result.registers
        kind = REGISTERS[result.dtype]() if count else None
        whole = llvm.StructType.get_literal([kind] * count) if count > 1 else kind
        made = llvm.inline_asm(whole, values, text, constraints, has_side_effects=volatile)
        if result.counts:
            numbers = [llvm.extractvalue(kind, made, [i]) for i in range(count)] if count > 1 else [made]
            made = _nested(numbers, result.counts)
        builder.store_var(target, made if count else None)

    return generate


def _nested(numbers: list[Any], counts: Sequence[int]) -> tuple[Any, ...]:
    inner = counts[0]
    if len(counts) == 1:
        return tuple(numbers)
    return tuple(tuple(numbers[i : i + inner]) for i in range(0, prod(counts), inner))


def _flat(builder: Any, args: Sequence[Any], shapes: Iterable[Any]) -> Iterator[Any]:
    """The registers that an instruction takes."""
    left = list(args)
    for dtype, counts in shapes:
        variable = left.pop(0)
        value = builder.load_var(variable)
        if dtype == "address":
            indices = builder.load_var(left.pop(0))
            storage = builder.get_storage_type(builder.get_numba_type(variable).dtype)
            for index in indices if counts else [indices]:
                place = llvm.getelementptr(
                    llvm.PointerType.get(), value, [convert(index, of.i64())], [DYNAMIC], storage, None
                )
                yield llvm.ptrtoint(res=of.i64(), arg=place)
        else:
            for number in value if counts else [value]:
                yield convert(number, REGISTERS[dtype]())


def cast(name: str) -> Callable:

    def generate(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        value = builder.load_var(args[0])
        if name == "array_address":
            value = memref_data_pointer(value)
        if name.endswith("address"):
            made = llvm.ptrtoint(res=of.i64(), arg=value)
        else:
            to_float = name == "bits_as_float"
            made = arith.bitcast((of.f32 if to_float else of.i32)(), convert(value, (of.i32 if to_float else of.f32)()))
        builder.store_var(target, made)

    return generate


def compile(function: Callable, signature: Any, capability: tuple[int, int]) -> str:
    refresh_registries()  # which don't know yet what `assembly` has made
    before, tools._cached_cc = tools._cached_cc, capability  # it asks the GPU also where `cc` is given
    try:
        ptx, _ = cuda.compile(function, signature, device=False, abi="numba", cc=capability, output="ptx")
    finally:
        tools._cached_cc = before
    return _FUNCTION.sub("", ptx)
