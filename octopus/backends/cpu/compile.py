"""Compile a CPU kernel of Numba's language to object code, keep that on disk, and load it.

Numba's own dispatcher compiles a function anew for every combination of flags of its array arguments (read-only,
contiguous, strided), and a process must import Numba before it can use what Numba keeps. A kernel of this library
takes one address, of its arguments, as the CUDA kernels do: there is one form per dtype, and a process that finds
its object code on disk links it within milliseconds and never imports a compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from typing import Any

from octopus.backends import cache as files
from octopus.backends import shipped

log = logging.getLogger(__name__)

SYMBOL, ENTRY = "octopus_kernel", "octopus_entry"
METH_FASTCALL = 0x80  # of Python's header `methodobject.h`
DIGEST_BYTES = 32
# Numba optimises a function once more with each that calls it. With more calls than these within each other a function
# is optimised as a part of its kernel alone; with fewer some kernels take up to a sixth longer.
MOST_CALLS = 3
# Numba's calling convention: where a result and an exception would go (there are none), then the arguments. What it
# returns, always 0, is not looked at, which saves a tenth of a call.
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_UNUSED = (ctypes.c_int64 * 2)()

_kernels: dict[str, Callable[..., Any]] = {}
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child would wait for ever for a thread that compiles in its parent
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def load(
    name: str, build: Callable[[], Callable[..., None]], entry: Callable[[], str] | None = None
) -> Callable[..., Any]:
    """The kernel of that name as a function of the address of its arguments, which lets go of Python's lock.

    Parameters
    ----------
    name : str
        Says all that distinguishes this kernel from others of the same sources.
    build : callable
        Returns the Python function, of one `int64` pointer; called, and Numba imported, only if the disk doesn't have
        the kernel.
    entry : callable, optional
        Returns the text, in LLVM's language, of a function `entry` of Python's convention METH_FASTCALL that calls the
        function `kernel`, both names in braces; what is returned then is that function.
    """
    kernel = _kernels.get(name)
    if kernel is None:
        with _lock:
            kernel = _kernels.get(name)
            if kernel is None:
                kernel = _kernels[name] = _load(name, build, entry)
    return kernel


def _load(name: str, build: Callable[[], Callable[..., None]], entry: Callable[[], str] | None) -> Callable[..., Any]:
    symbol = ENTRY if entry else SYMBOL
    file = f"cpu-{files.kernel_digest('cpu')}/{name}-{_machine()}.o"
    address = _stored(file, symbol)
    if address is None and (code := shipped.code(name)):
        address = link(code, symbol)
    if address is None:
        with files.alone(file):  # of processes that start together one compiles
            address = _stored(file, symbol) or _made(file, name, build, entry)
    if entry:
        return _function(name, address)
    unused = ctypes.addressof(_UNUSED)
    return partial(_PROTOTYPE(address), unused, unused + 8)


def address_of(kernel: Any) -> int:
    """Address of a kernel from `load`."""
    address: int = ctypes.cast(kernel.func, ctypes.c_void_p).value or 0
    return address


class _MethodDef(ctypes.Structure):
    """As Python's header `methodobject.h` has it."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


def _function(name: str, address: int) -> Any:
    """A function of Python whose machine code lies at an address."""
    definition = _MethodDef(name.encode(), address, METH_FASTCALL, None)
    _libraries.append(definition)  # which stays, as the code does
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p), ctypes.py_object
    return make(ctypes.addressof(definition), None, None)


def _made(file: str, name: str, build: Callable[[], Callable[..., None]], entry: Callable[[], str] | None) -> int:
    log.info("compiling the CPU kernel %s, once for this machine", name)
    import numba

    switched_off, numba.config.DISABLE_JIT = (numba.config.DISABLE_JIT, 0)  # by whoever debugs functions of their own
    try:
        code = to_object(build(), entry() if entry else "")
    finally:
        numba.config.DISABLE_JIT = switched_off
    files.store(file, hashlib.sha256(code).digest() + code)
    return link(code, ENTRY if entry else SYMBOL)


def _stored(file: str, symbol: str) -> int | None:
    """Address of a kernel that the disk has; None if it calls what this process doesn't have.

    With some mathematical libraries, which Numba loads, a kernel calls these.
    """
    code = _checked(files.load_bytes(file))
    try:
        return None if code is None else link(code, symbol)
    except RuntimeError as error:
        log.info("%s can't be linked: %s", file, error)
        return None


def _checked(stored: bytes | None) -> bytes | None:
    """Object code that is what was stored; a damaged file would crash the process."""
    if stored is None or len(stored) <= DIGEST_BYTES:
        return None
    digest, code = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


@cache
def options() -> dict[str, Any]:
    """How Numba compiles kernels and what they call: without exceptions, without memory of Numba's own, and into LLVM's
    language alone. Machine code is made once, of a whole kernel; Numba makes it of every function, a third of its time.
    """
    from numba import _dynfunc
    from numba.core.codegen import AOTCodeLibrary, JITCPUCodegen
    from numba.core.compiler import Compiler
    from numba.core.registry import cpu_target

    class Library(AOTCodeLibrary):
        def _optimize_final_module(self) -> None:
            """With all that it calls, unless these are `MOST_CALLS` deep."""
            self.calls = 1 + max((getattr(called, "calls", 0) for called in self._linking_libraries), default=-1)
            if self.calls <= MOST_CALLS:
                super()._optimize_final_module()

    class Codegen(JITCPUCodegen):
        _library_class = Library

        def _add_module(self, module: Any) -> None:
            """Not to the engine that would make machine code of it."""

    def executable(library: Any, fndesc: Any, env: Any) -> Any:
        """What stands for a compiled function; nothing ever calls it."""
        library._ensure_finalized()
        return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "", 0, env, (library,))

    target = cpu_target.target_context
    target.refresh()
    target = target.subtarget(_internal_codegen=Codegen("octopus"), get_executable=executable)

    class TextCompiler(Compiler):
        def __init__(self, typing_context: Any, target_context: Any, *others: Any) -> None:
            super().__init__(typing_context, target, *others)

    plain = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "error_model": "numpy"}
    return {**plain, "pipeline_class": TextCompiler}


def to_text(function: Callable[..., None]) -> str:
    """A function of one `int64` pointer in LLVM's language, under the name `SYMBOL`."""
    import numba
    from numba.core.codegen import AOTCodeLibrary

    signature = numba.types.void(numba.types.CPointer(numba.types.int64))
    dispatcher = numba.njit([signature], **options())(function)
    (compiled,) = dispatcher.overloads.values()
    if compiled.library.calls > MOST_CALLS:
        AOTCodeLibrary._optimize_final_module(compiled.library)
    text: str = compiled.library.get_llvm_str()
    return text.replace(compiled.fndesc.llvm_func_name, SYMBOL)


def to_object(function: Callable[..., None], entry: str = "", processor: str = "") -> bytes:
    """Object code of such a function, and of an entry as of `load`, for a processor, or for that of this machine."""
    from llvmlite import binding

    text = to_text(function) + entry.format(entry=ENTRY, kernel=SYMBOL)
    _prepare()
    target = binding.Target.from_default_triple().create_target_machine(
        cpu=processor or binding.get_host_cpu_name(),
        features="" if processor else _features(),
        opt=3,
        reloc="pic",
        codemodel="small",
        jit=True,
    )
    code: bytes = target.emit_object(binding.parse_assembly(text))
    return code


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

    _prepare()
    # LLVM's older linker may put an object's parts further apart than its code can reach, and then ends the process.
    return binding.create_lljit_compiler(use_jit_link=sys.platform == "linux")


def _prepare() -> None:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _features() -> str:
    from llvmlite import binding

    return str(binding.get_host_cpu_features().flatten())


@cache
def _machine() -> str:
    """The processor that code is made for: a cache may be shared by machines."""
    from llvmlite import binding

    processor = binding.get_host_cpu_name()
    return f"{processor}-{hashlib.sha256(_features().encode()).hexdigest()[:8]}"
