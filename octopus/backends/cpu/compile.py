"""Compile a CPU kernel of Numba's language to object code, keep that on disk, and load it.

Numba's own dispatcher compiles a function anew for every combination of flags of its array arguments (read-only,
contiguous, strided), and a process must import Numba before it can use what Numba keeps. A kernel of this library
takes one address, of its arguments, as the CUDA kernels do: there is one form per dtype, and a process that finds
its object code on disk links it within milliseconds and never imports a compiler.
"""

import ctypes
import hashlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache
from itertools import count
from typing import Any

from octopus.backends import cache as files
from octopus.backends import shipped

log = logging.getLogger(__name__)

SYMBOL, ENTRY = "octopus_kernel", "octopus_entry"
METH_FASTCALL = 0x80  # of Python's header `methodobject.h`
DIGEST_BYTES = 32
# Up to this size a function is inlined, instead of 250: loops are faster in functions of their own (antialiasing of
# float32 by a third), and kernels are optimised in two thirds of the time.
INLINED = 100
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_kernels: dict[str, Callable[..., Any]] = {}
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child would wait for ever for a thread that compiles in its parent
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def load(
    name: str, build: Callable[[], Callable[..., None]], entry: Callable[[], str] | None = None
) -> Callable[..., Any]:
    """The kernel of that name as a function of the address of its arguments, which lets go of Python's lock. The name
    says all that distinguishes it from others of the same sources. `build` returns the Python function, of one `int64`
    pointer; it is called, and Numba imported, only if the disk doesn't have the kernel. `entry` returns the text, in
    LLVM's language, of a function `entry` of Python's convention METH_FASTCALL that calls the function `kernel`, both
    names in braces; what is returned then is that function."""
    if name not in _kernels:
        with _lock:
            if name not in _kernels:
                _kernels[name] = _load(name, build, entry)
    return _kernels[name]


def _load(name: str, build: Callable[[], Callable[..., None]], entry: Callable[[], str] | None) -> Callable[..., Any]:
    symbol = ENTRY if entry else SYMBOL
    file = f"cpu-{files.kernel_digest('cpu')}/{name}-{_machine()}.o"
    address = _linked(_checked(files.load_bytes(file)), symbol) or _linked(shipped.code(name), symbol)
    if address is None:
        with files.alone(file):  # of processes that start together one compiles
            address = _linked(_checked(files.load_bytes(file)), symbol)
            if address is None:
                files.announce()
                log.info("compiling the CPU kernel %s, once for this machine", name)
                code = _compiled(build, entry)
                files.store(file, hashlib.sha256(code).digest() + code)
                address = link(code, symbol)
    if entry is None:
        return _PROTOTYPE(address)
    definition = _MethodDef(name.encode(), address, METH_FASTCALL, None)
    _libraries.append(definition)  # which stays, as the code does
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p), ctypes.py_object
    made: Callable[..., Any] = make(ctypes.addressof(definition), None, None)
    return made


class _MethodDef(ctypes.Structure):
    """As Python's header `methodobject.h` has it."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


def address_of(kernel: Any) -> int:
    return ctypes.cast(kernel, ctypes.c_void_p).value or 0


def _compiled(build: Callable[[], Callable[..., None]], entry: Callable[[], str] | None) -> bytes:
    import numba

    switched_off, numba.config.DISABLE_JIT = (numba.config.DISABLE_JIT, 0)  # by whoever debugs functions of their own
    try:
        return to_object(build(), entry() if entry else "")
    finally:
        numba.config.DISABLE_JIT = switched_off


def _linked(code: bytes | None, symbol: str) -> int | None:
    """Address of a kernel; None without one, or if it calls a mathematical library that this process lacks."""
    try:
        return None if code is None else link(code, symbol)
    except RuntimeError as error:
        log.info("a kernel can't be linked: %s", error)
        return None


def _checked(stored: bytes | None) -> bytes | None:
    """Object code that is what was stored; a damaged file would crash the process."""
    if stored is None or len(stored) <= DIGEST_BYTES:
        return None
    digest, code = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def to_text(function: Callable[..., None]) -> str:
    """A function of one `int64` pointer and all that it calls, not optimised, in LLVM's language; it is `SYMBOL`."""
    import numba
    from numba.core.compiler_lock import global_compiler_lock

    kind = numba.types.void(numba.types.CPointer(numba.types.int64))
    with global_compiler_lock:  # what other threads compile meanwhile is optimised
        _set_numba_up()
        # Numba optimises each function, with all that it calls, and so again and again what lies deep: 3.2 s instead
        # of 1.9 for a plain crop.
        level, numba.config.OPT = numba.config.OPT, 0
        try:
            made = numba.cfunc(kind, error_model="numpy")(function)
        finally:
            numba.config.OPT = level
    text: str = made.inspect_llvm()
    return text.replace(made.native_name, SYMBOL)


def to_object(function: Callable[..., None], entry: str = "", processor: str = "") -> bytes:
    """Object code of such a function, and of an entry as of `load`, for a processor, or for that of this machine."""
    from llvmlite import binding

    text = to_text(function) + entry.format(entry=ENTRY, kernel=SYMBOL)
    # Where a function begins within a line of the cache decides on up to a third of its loops' time. With Numba's
    # debug information there is a reference to it behind the place for that.
    text = re.sub(r"^(define .*?)( !dbg !\d+)? \{$", r"\1 align 64\2 {", text, flags=re.MULTILINE)
    module = binding.parse_assembly(text)
    cpu, features = (processor, "") if processor else _host()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small", jit=True
    )
    _optimize(module, machine, ENTRY if entry else SYMBOL)
    code: bytes = machine.emit_object(module)
    return code


def _optimize(module: Any, machine: Any, symbol: str) -> None:
    from llvmlite import binding

    for function in _defined(module.functions):
        function.linkage = "external"  # rather than one of several alike: so that all see that it returns no error
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    tuning.inlining_threshold = INLINED
    passes, unused = binding.create_pass_builder(machine, tuning), binding.create_new_module_pass_manager()
    passes.getModulePassManager().run(module, passes)
    for part in (*_defined(module.functions), *_defined(module.global_variables)):
        part.linkage = "external" if part.name == symbol else "internal"
    unused.add_ipsccp_pass()  # some return none only now that loops are unrolled
    unused.add_simplify_cfg_pass()
    unused.add_global_dead_code_eliminate_pass()
    unused.run(module, passes)


def _defined(parts: Iterable[Any]) -> list[Any]:
    return [part for part in parts if not part.is_declaration]


@cache
def _set_numba_up() -> None:
    """Let Numba make its engine while that is to optimise: it serves whatever else this process compiles, too."""
    import numba

    def nothing() -> None:
        pass

    numba.njit("void()")(nothing)


def link(code: bytes, symbol: str = SYMBOL) -> int:
    """Address of the kernel in object code that is linked into this process, and stays there."""
    from llvmlite import binding

    builder = binding.JITLibraryBuilder().add_object_img(code).export_symbol(symbol).add_current_process()
    library = builder.link(_linker(), f"octopus-{next(_numbers)}")
    _libraries.append(library)
    return int(library[symbol])


_libraries: list[Any] = []
_numbers = count()


@cache
def _linker() -> Any:
    from llvmlite import binding

    _host()
    # LLVM's older linker may put an object's parts further apart than its code can reach, and then ends the process.
    return binding.create_lljit_compiler(use_jit_link=sys.platform == "linux")


@cache
def _host() -> tuple[str, str]:
    """This machine's processor, as LLVM names it, and what it can do."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


@cache
def _machine() -> str:
    """The processor that code is made for: a cache may be shared by machines."""
    processor, features = _host()
    return f"{processor}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"
