"""Kernels that measure the machine: nothing, waiting, and reading."""

import numpy as np

from octopus.backends.cuda.language import cuda
from octopus.kernels.arguments import Arguments
from octopus.kernels.cuda import ptx


def empty(
    frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y,
    gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
):  # fmt: skip
    """Nothing, with eighteen arguments: what remains of a kernel's time is the launch and their passing."""


def wait(microseconds):
    """Keep the stream busy without touching memory, so that the host can queue what is timed next."""
    for _ in range(microseconds):
        cuda.nanosleep(np.uint32(1000))


def read_words(source, loads, sink):
    """Combine `loads` loads of 16 bytes, whatever they mean; `loads` is a multiple of four times the number of threads.
    Each thread has four independent loads on their way. The result is stored only if it has one value of 2^32, so that
    the compiler leaves out none of them."""
    threads = np.int64(cuda.gridDim.x) * cuda.blockDim.x
    at = np.int64(cuda.blockIdx.x) * cuda.blockDim.x + cuda.threadIdx.x
    found = np.uint32(0)
    while at < loads:
        a, b = ptx.load_words(source, at * 16), ptx.load_words(source, (at + threads) * 16)
        c, d = ptx.load_words(source, (at + 2 * threads) * 16), ptx.load_words(source, (at + 3 * threads) * 16)
        found ^= a[0] ^ a[1] ^ a[2] ^ a[3] ^ b[0] ^ b[1] ^ b[2] ^ b[3]
        found ^= c[0] ^ c[1] ^ c[2] ^ c[3] ^ d[0] ^ d[1] ^ d[2] ^ d[3]
        at += 4 * threads
    if found == np.uint32(0x9E3779B9):
        sink[0] = found


empty.arguments = Arguments.table(  # type: ignore[attr-defined]
    "*uint8 frame", "int32 pitch width height", "*float32 boxes out", "int32 out_width out_height tiles_x tiles_y",
    "float32 gain0 gain1 gain2 gain3 bias0 bias1 bias2 bias3",
)  # fmt: skip
wait.arguments = Arguments.table("int32 microseconds")  # type: ignore[attr-defined]
read_words.arguments = Arguments.table(  # type: ignore[attr-defined]
    "*uint8 source", "int64 loads", "*uint32 sink"
)
KERNELS = {kernel.__name__: kernel for kernel in (empty, wait, read_words)}
