"""numba-cuda as the compiler of the kernels: what `language` asks of one."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import prod
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import config, cuda, types

SIMULATED = bool(config.ENABLE_CUDASIM)
device = cuda.jit(device=True)
libdevice = None if SIMULATED else import_module("numba.cuda.libdevice")
intrinsic = None if SIMULATED else import_module("numba.cuda.extending").intrinsic

INT, LONG, FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
REGISTERS = {
    "int32": INT, "uint32": INT, "int64": LONG, "float32": FLOAT, "float64": ir.DoubleType(), "void": ir.VoidType(),
}  # fmt: skip
_lock = threading.RLock()


def generator(text: str, result: Any, arguments: Sequence[Any], constraints: str, volatile: bool) -> Callable:
    """What makes code of an instruction; see `language.instruction`, whose shapes these are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = list(_flat(context, builder, signature, args, arguments))
        kind, count = REGISTERS[result.dtype], result.registers
        kind = ir.LiteralStructType([kind] * count) if count > 1 else kind
        made = builder.call(
            ir.InlineAsm(ir.FunctionType(kind, [v.type for v in values]), text, constraints, side_effect=volatile),
            values,
        )
        if not count:
            return context.get_dummy_value()
        return _tuple(context, builder, signature.return_type, made, result.counts) if result.counts else made

    return generate


def _flat(context: Any, builder: Any, signature: Any, args: Any, shapes: Iterable[Any]) -> Iterator[Any]:
    """The registers that an instruction takes."""
    left = list(zip(args, signature.args, strict=True))
    for dtype, counts in shapes:
        value, _ = left.pop(0)
        if dtype == "address":
            indices, kind = left.pop(0)
            if not counts:
                indices = context.cast(builder, indices, kind, types.int64)
            yield from (builder.gep(value, [index]) for index in _parts(builder, indices, counts))
        else:
            yield from _parts(builder, value, counts)


def _parts(builder: Any, value: Any, counts: Sequence[int]) -> list[Any]:
    return [builder.extract_value(value, i) for i in range(counts[0])] if counts else [value]


def _tuple(context: Any, builder: Any, kind: Any, made: Any, counts: Sequence[int]) -> Any:
    """The numbers of a result as a tuple, or as tuples of a tuple."""
    count, inner = prod(counts), counts[0]
    numbers = [builder.extract_value(made, i) for i in range(count)] if count > 1 else [made]
    if len(counts) == 1:
        return context.make_tuple(builder, kind, numbers)
    tuples = [context.make_tuple(builder, kind.dtype, numbers[i : i + inner]) for i in range(0, count, inner)]
    return context.make_tuple(builder, kind, tuples)


def cast(name: str) -> Callable:

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (value,), (kind,) = args, signature.args
        if name == "array_address":
            value = context.make_array(kind)(context, builder, value).data
        if name.endswith("address"):
            return builder.ptrtoint(value, LONG)
        return builder.bitcast(value, FLOAT if name == "bits_as_float" else INT)

    return generate


def compile(function: Callable, signature: Any, capability: tuple[int, int]) -> str:
    options = {"device": False, "abi": "numba", "cc": capability, "output": "ptx", "lineinfo": False}
    with _capability(capability):
        ptx, _ = cuda.compile(function, signature, **options)
    return ptx


@contextmanager
def _capability(capability: tuple[int, int]) -> Iterator[None]:
    """Numba asks the GPU in use what to compile device functions for, also where there is none."""
    from numba.cuda import dispatcher

    with _lock:
        asked = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
        try:
            yield
        finally:
            dispatcher.get_current_device = asked
