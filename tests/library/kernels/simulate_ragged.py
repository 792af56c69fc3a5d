"""Runs the kernels on ragged batches in Numba's simulator, in a process of its own, as `simulate` does the plain crop.

Prints, for each kind of kernel, the largest difference to the reference, as JSON; and the kinds whose results are not
those of the other strategies, bit for bit.
"""

from __future__ import annotations

import json
import os
from itertools import product

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

from octopus.kernels import ragged_reference
from octopus.kernels.cuda import ragged
from octopus.kernels.cuda.ragged_tiles import Kind, shape_for
from octopus.kernels.operations import OPERATIONS, result_dtype
from octopus.ragged import blockmap

SHAPES = np.array([(1, 1), (3, 5), (0, 0), (7, 4), (1, 9), (0, 0), (9, 1), (2, 2), (6, 11), (1, 1), (0, 0)])
OFFSETS = np.concatenate([[0], np.cumsum(SHAPES.prod(axis=1))])
FIRST = np.linspace(0.3, 0.9, len(SHAPES)).astype(np.float32)
SECOND = np.linspace(2.0, 0.5, len(SHAPES)).astype(np.float32)
HEIGHTS, WIDTHS = np.ascontiguousarray(SHAPES.T.astype(np.int32))
THREADS = 4


def values_of(dtype):
    random = np.random.default_rng(1)
    total = OFFSETS[-1]
    return (
        random.random(total, np.float32) if dtype == "float32" else random.integers(0, 256, total, np.uint8)
    )


def expected(operation, values, out_dtype):
    parts = []
    for item, shape in enumerate(SHAPES):
        part = values[OFFSETS[item] : OFFSETS[item + 1]].reshape(shape)
        parts.append(ragged_reference.apply(operation, part, FIRST[item], SECOND[item]).ravel())
    result = np.concatenate(parts)
    return np.rint(result).clip(0, 255) if out_dtype == "uint8" else result


def run(operation, strategy, dtype, values, packs, source):
    out_dtype = result_dtype(operation, dtype)
    found = blockmap.build(strategy, OFFSETS, threshold=10)
    kind = Kind(operation, strategy, dtype, out_dtype, "int32", values, packs, THREADS)
    out = np.full(len(source), 3, out_dtype)
    none = np.zeros(1, np.int32)
    blocks = found.blocks or -(-len(source) // (values * packs * THREADS))
    # The simulator writes all arrays back, and a map's can't be written.
    offsets, owner, starts = (
        none if array is None else array.copy() for array in (found.offsets, found.owner, found.starts)
    )
    cuda.jit(ragged.build(kind))[blocks, THREADS](
        source, out, len(source), offsets, np.int32(len(SHAPES)), FIRST, SECOND, WIDTHS, HEIGHTS, owner, starts,
        found.threshold,
    )  # fmt: skip
    return out


def beyond():
    """The largest difference where values go on behind the last offset; the simulator stops at wrong indices."""
    rest = np.full(23, 2, np.float32)
    worst = 0.0
    for strategy, (values, packs) in product(("thread_search", "block_search"), ((1, 2), (4, 1), (4, 4))):
        source = np.concatenate([values_of("float32"), rest])
        found = run("multiply", strategy, "float32", values, packs, source)
        right = np.concatenate([expected("multiply", source[: -len(rest)], "float32"), rest * FIRST[-1]])
        worst = max(worst, float(np.abs(found - right).max()))
    return worst


def main():
    worst, unlike = {}, []
    for operation, dtype in product(OPERATIONS, ("float32", "uint8")):
        source = values_of(dtype)
        wide = shape_for(operation, "block_search", dtype, 10**9, 1, 132).values
        first = None
        for strategy, (values, packs) in product(blockmap.STRATEGIES, ((1, 1), (wide, 1), (wide, 4))):
            found = run(operation, strategy, dtype, values, packs, source)
            name = f"{operation}-{dtype}-{strategy}-{values}x{packs}"
            right = expected(operation, source, found.dtype.name)
            worst[name] = float(np.abs(found.astype(np.float64) - right).max())
            first = found if first is None else first
            if not np.array_equal(found, first):
                unlike.append(name)
    print(json.dumps({"worst": worst, "unlike": unlike, "beyond": beyond()}))


if __name__ == "__main__":
    main()
