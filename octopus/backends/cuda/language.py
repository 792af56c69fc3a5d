"""The language of the GPU kernels, and the one place that knows which compiler they have.

Kernels take from here what their language consists of (`cuda`, `device`, `libdevice`), `ptx` the way to make a table of
instructions, and `backends.cuda.compile` the PTX of a kernel. `of_numba` and `of_mlir` are the compilers: numba-cuda,
and its successor numba-cuda-mlir, which `OCTOPUS_COMPILER=mlir` chooses. Both read the same Python.

In a process with `NUMBA_ENABLE_CUDASIM` kernels run in Numba's simulator, which executes Python. It has neither PTX nor
votes of a warp: whoever simulates puts functions of Python for them into `emulations`, by name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

from octopus.backends.cuda.device import compiler_name

if compiler_name() == "mlir":
    from octopus.backends.cuda import of_mlir as compiler
else:
    from octopus.backends.cuda import of_numba as compiler

cuda, libdevice, device, SIMULATED = compiler.cuda, compiler.libdevice, compiler.device, compiler.SIMULATED
emulations: dict[str, Callable] = {}  # filled before `ptx` is imported
LETTERS = {"int32": "r", "uint32": "r", "int64": "l", "float32": "f", "float64": "d", "address": "l"}  # of registers
TAIL = "octopus_tail"  # in PTX, the name of an argument that is an array by value
TAIL_PLACE = str(0x6F63746F70757300)  # stands for it until the PTX has it
VOID, ADDRESS = "void", "address"


class Shape(NamedTuple):
    """What an instruction takes or gives: `float32*4*3` is three tuples of four."""

    dtype: str
    counts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Shape:
        dtype, *counts = text.split("*")
        return cls(dtype, tuple(map(int, counts)))

    @property
    def registers(self) -> int:
        return 0 if self.dtype == VOID else prod(self.counts)

    @property
    def type(self) -> Any:
        """The compiler's; of addresses, that of their indices."""
        kind = getattr(compiler.types, "int64" if self.dtype == ADDRESS else self.dtype)
        for count in self.counts:
            kind = compiler.types.UniTuple(kind, count)
        return kind


def emulated(name: str, function: Callable) -> Callable:
    """The function, or in the simulator what stands for it."""
    return emulations.get(name, function) if SIMULATED else function


def instruction(
    name: str, text: str, result: str, *arguments: str, volatile: bool = False, early: bool = False
) -> Callable:
    """A device function that is a piece of PTX; `name` is that of its emulation. In the text `$0`, `$1`, ... are the
    numbers of the result, then those of the arguments. Each is a dtype; `dtype*4` for a tuple of four; `float32*4*3`
    for three of these; "void" for no result. An argument "address" is two of the function, an array and an index,
    "address*4" an array and four indices. `volatile`: it does more than give a result, or depends on more than its
    arguments; `early`: a result is written before the last argument is read."""
    if SIMULATED:
        return _emulation(name)
    made, taken = Shape.of(result), [Shape.of(argument) for argument in arguments]
    written = [("=&" if early else "=") + LETTERS[made.dtype]] * made.registers if made.registers else []
    read = [LETTERS[shape.dtype] for shape in taken for _ in range(shape.registers)]
    generate = compiler.generator(text, made, taken, ",".join(written + read), volatile)
    slots: list[Shape | None] = []  # of the function's arguments; an array, and one index, have a type of their own
    for shape in taken:
        is_address = shape.dtype == ADDRESS
        slots += [None] * is_address + [None if is_address and not shape.counts else shape]

    def apply(typing_context: Any, *given: Any) -> tuple[Any, Callable]:
        kinds = [own if slot is None else slot.type for slot, own in zip(slots, given, strict=True)]
        return made.type(*kinds), generate

    names = ["typing_context", *(f"value{number}" for number in range(len(slots)))]
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in names]
    apply.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    apply.__name__ = name
    made_of: Callable = compiler.intrinsic(apply)
    return made_of


def _emulation(name: str) -> Callable:
    def call(*args: Any) -> Any:
        if name not in emulations:
            raise NotImplementedError(f"the simulator has no emulation of {name}")
        return emulations[name](*args)

    return call


def _cast(name: str, result: str, argument: str | None = None) -> Callable:
    """A device function of one value, of any type or of one, for which a compiler has code of its own."""
    if SIMULATED:
        return _emulation(name)

    def apply(typing_context: Any, value: Any) -> tuple[Any, Callable]:
        types = compiler.types
        return getattr(types, result)(getattr(types, argument) if argument else value), compiler.cast(name)

    made: Callable = compiler.intrinsic(apply)
    return made


bits_as_float = _cast("bits_as_float", "float32", "uint32")
float_as_bits = _cast("float_as_bits", "uint32", "float32")
address = _cast("address", "int64")  # of a pointer's first element
_array_address = _cast("array_address", "int64")
_to_shared = instruction("to_shared", "{.reg .b64 a; cvta.to.shared.u64 a, $1; cvt.u32.u64 $0, a;}", "uint32", "int64")


@device
def shared_address(array):
    """Where in shared memory the first element of a shared array lies, uint32."""
    return _to_shared(_array_address(array))


def to_ptx(function: Callable, kinds: Iterable[str], capability: tuple[int, int]) -> str:
    """PTX of a kernel for one compute capability; `kinds` are dtypes of its arguments, `*dtype` is a pointer. A
    function may say in `launch_bounds` how many threads its blocks have at most and how many blocks a processor has
    registers for, and in `tail_bytes` how long a last argument is, an array by value, which `ptx.tail_floats` reads."""
    types = compiler.types
    given = [types.CPointer(getattr(types, kind[1:])) if kind[0] == "*" else getattr(types, kind) for kind in kinds]
    ptx = _compact(compiler.compile(function, types.void(*given), capability), function.__name__)
    bounds = getattr(function, "launch_bounds", None)
    if bounds is not None:  # not by the compiler: it then works out in loops what it had kept in registers before them
        ptx = _replaced(ptx, "\n)\n{", f"\n)\n.maxntid {bounds[0]}, 1, 1\n.minnctapersm {bounds[1]}\n{{")
    if tail := getattr(function, "tail_bytes", 0):
        ptx = _replaced(ptx, "\n)", f",\n\t.param .align 16 .b8 {TAIL}[{tail}]\n)").replace(TAIL_PLACE, TAIL)
    return ptx


def _compact(ptx: str, name: str) -> str:
    """Without comments and the compiler's own data, which kernels don't read, and with the same names each time."""
    (entry,) = re.findall(r"\.visible \.entry (\S+?)\(", ptx)
    ptx = re.sub(r"[ \t]*//.*|^\.common .*NumbaEnv.*", "", ptx.replace(entry, name), flags=re.MULTILINE)
    ptx = re.sub(r"(\.extern \.shared \.align) \d+", r"\1 16", ptx)  # loads and stores of four words need it
    names: dict[str, str] = {}
    ptx = re.sub(r"\b(?:_Z|_cudapy)[\w$]+", lambda found: names.setdefault(found[0], f"{name}_data{len(names)}"), ptx)
    return re.sub(r"\n\s*(?=\n)", "", ptx)


def _replaced(ptx: str, old: str, new: str) -> str:
    if old not in ptx:
        raise RuntimeError(f"the compiler's PTX has no {old!r}: this version of it is not supported")
    return ptx.replace(old, new, 1)
