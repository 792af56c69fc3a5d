"""What the instructions of `octopus.kernels.cuda.ptx` do, in Python, for Numba's simulator."""

import ctypes

import numpy as np
from numba import cuda

from octopus.kernels.images import bfloat16_bits
from octopus.kernels.pixelwise import last_at_or_before

MAGIC = np.float32(8388608.0)


def _halves(word):
    return int(word) & 0xFFFF, int(word) >> 16


def _byte(word, number):
    return int(word) >> 8 * number & 255


def load_words(source, index):
    return tuple(source[index : index + 16].view(np.uint32))


def permute(low, high, selector):
    both = int(high) << 32 | int(low)
    return np.uint32(sum((both >> 8 * (int(selector) >> 4 * i & 7) & 255) << 8 * i for i in range(4)))


def join_bytes(a, b, c, d):
    return np.uint32(sum((int(value) & 255) << 8 * i for i, value in enumerate((a, b, c, d))))


def _mix(first):
    def mix(weights, pairs):
        low, high = _halves(weights)
        return np.float32(MAGIC + low * _byte(pairs, first) + high * _byte(pairs, first + 1))

    return mix


def _dot(word, factors, total, parts):
    return np.uint32(int(total) + sum(part * _byte(factors, i) for i, part in enumerate(parts)))


def store_words(out, index, words):
    out[index : index + 4 * len(words)] = np.array(words, np.uint32).view(np.uint8)


def power(value, exponent):
    with np.errstate(all="ignore"):
        return np.float32(np.exp2(np.float32(exponent * np.log2(value))))


@cuda.jit(device=True)
def block_total(value, total):
    if cuda.threadIdx.x == 0:
        total[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(total, 0, value)
    cuda.syncthreads()
    found = total[0]
    cuda.syncthreads()
    return found


@cuda.jit(device=True)
def atomic_add(words, index, value):
    return cuda.atomic.add(words, index, value)


def _store(dtype):
    """Of the bytes of a result that is rounded as it is stored."""

    def store(out, index, values):
        for i, value in enumerate(values):
            if dtype in ("uint8", "int8"):
                value = np.uint8(np.rint(value).clip(0, 255)) ^ np.uint8(128 * (dtype == "int8"))
            elif dtype == "bfloat16":
                value = bfloat16_bits(np.float32(value))
            out[index + i] = value

    return store


def _at(kind):
    return lambda address: kind.from_address(int(address)).value


TABLE = {
    "load_pixel": lambda frame, index: np.uint32(frame[index]),
    "load_word": lambda frame, index: np.uint32(frame[index : index + 4 // frame.itemsize].view(np.uint32)[0]),
    "load_half": lambda frame, index: np.uint32(frame[index : index + 2].view(np.uint16)[0]),
    "load_floats": lambda source, index: tuple(source[index : index + 4]),
    "load_words": load_words,
    "load_uint8_at": _at(ctypes.c_uint8),
    "load_uint16_at": _at(ctypes.c_uint16),
    "load_float32_at": _at(ctypes.c_float),
    "load_words_if": lambda source, index, wanted: load_words(source, index) if wanted else (np.uint32(0),) * 4,
    "load_byte_if": lambda source, index, wanted: np.uint32(source[index]) if wanted else np.uint32(0),
    "prefetch": lambda frame, index: None,
    "funnel": lambda low, high, shift: np.uint32((int(high) << 32 | int(low)) >> int(shift) & 0xFFFFFFFF),
    "permute": permute,
    **{f"byte{i}": lambda word, i=i: np.float32(_byte(word, i) + MAGIC) for i in range(4)},
    "mix_low": _mix(0),
    "mix_high": _mix(2),
    "pack": lambda a, b, c, d: join_bytes(*(value - MAGIC for value in (a, b, c, d))),
    "dot_bytes": lambda word, factors, total: _dot(word, factors, total, [_byte(word, i) for i in range(4)]),
    "dot_halves": lambda word, factors, total: _dot(word, factors, total, _halves(word)),
    "byte_mask": lambda low, high: np.uint32((1 << int(high)) - (1 << int(low))),
    "quotient": lambda dividend, divisor: np.int32(int(dividend) // int(divisor)),
    "store_words": store_words,
    **{
        f"store_{dtype}_{count}": _store(dtype)
        for dtype in ("float32", "float16", "bfloat16", "uint8", "int8")
        for count in (1, 2, 3, 4, 16)
    },
    "bits_as_float": lambda bits: np.uint32(bits).view(np.float32),
    "float_as_bits": lambda value: np.float32(value).view(np.uint32),
    "reciprocal": lambda value: np.float32(1.0) / value,
    "saturated": lambda a, b, c: min(max(a * b + c, np.float32(0.0)), np.float32(1.0)),
    "power": power,
    "power_of_byte": power,
    "atomic_add": atomic_add,
    "fence": lambda: None,
    "block_total": block_total,
    # The simulator runs threads one after the other and has no votes.
    "search_by_warp": lambda offsets, items, element: last_at_or_before(offsets, np.int32(0), items, element),
}
