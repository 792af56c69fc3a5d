"""Runs the kernels of `gamma`, and that of the best of a row, in Numba's simulator, in a process of its own; other
operations stand in `cases.ragged`.

Prints as JSON what they give unlike NumPy at their limits, whether packs give the same, and the largest difference
where values go on behind the last offset.
"""

import json
import os
import sys
from functools import partial
from itertools import product
from pathlib import Path

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from cases.simulate import simulate
from numba import cuda

from octopus.kernels.cuda import best, ragged
from octopus.kernels.cuda.ragged_tiles import Kind

simulate(barriers=True)
THREADS = 4


def gamma(strategy, shape, source, out, offsets, exponents):
    """`out`, filled by the kernel of a shape for items of these offsets."""
    kind = Kind("gamma", strategy, source.dtype.name, source.dtype.name, "int32", *shape, THREADS)
    blocks, none = -(-len(source) // (THREADS * shape[0] * shape[1])), np.zeros(1, np.int32)
    cuda.jit(ragged.build(kind))[blocks, THREADS](
        source, out, len(source), offsets, np.int32(len(exponents)), exponents, exponents, none, none, none, none, 0
    )
    return out


def beyond():
    """The largest difference where values go on behind the last offset; the simulator stops at wrong indices."""
    worst, offsets = 0.0, np.array([0, 15, 15, 71, 142], np.int32)
    source, numbers = (np.random.default_rng(1).random(165, np.float32), np.linspace(0.3, 0.9, 4).astype(np.float32))
    right = source ** np.repeat(numbers, [15, 0, 56, 94])
    for strategy, shape in product(("thread_search", "block_search"), ((1, 2), (4, 1), (4, 4))):
        found = gamma(strategy, shape, source, np.full_like(source, 3), offsets, numbers)
        worst = max(worst, float(np.abs(found - right).max()))
    return worst


LIMITS = (
    (0, 0.5), (0, 0), (0, -1), (0, 1e-30), (1, 3.5), (1, 1e30), (1, 0), (2, 0), (1e-45, 0.01), (1e-38, 0.1), (1e-20, 2),
    (float("nan"), 2), (float("nan"), 0), (-2, 3), (-2, 2), (-2, 0), (-2, -3), (-2, 0.5), (-0.5, -1), (-1, 16777217),
    (-1, 1e30), (-1, 16777215), (-0.5, 1e-30), (0.5, -16), (2, 200), (0.5, 160), (0.5, 130), (3, 0.5), (1e30, -2),
    (float("inf"), 0.5), (float("inf"), -1), (float("inf"), 0), (0.25, float("inf")), (0.25, float("nan")), (3e38, 1),
)  # fmt: skip


def limits():
    """What `gamma` gives for unusual values and exponents unlike NumPy, and whether packs give the same."""
    numbers, exponents = np.array(LIMITS, np.float32).T.copy()
    offsets = np.arange(0, 4 * len(numbers) + 1, 4, dtype=np.int32)
    # Among three usual values of the same pack, at each place in turn.
    source = np.full((len(numbers), 4), 0.7, np.float32)
    source[np.arange(len(numbers)), np.arange(len(numbers)) % 4] = numbers
    source = source.ravel()
    with np.errstate(all="ignore"):
        call = partial(gamma, source=source, offsets=offsets, exponents=exponents)
        found = [call("block_search", shape, out=np.zeros_like(source)) for shape in ((1, 1), (4, 1))]
        right = (source.astype(np.float64) ** np.repeat(exponents, 4).astype(np.float64)).astype(np.float32)
    near = np.isclose(found[0], right, rtol=1e-4, atol=1e-44, equal_nan=True)
    return [LIMITS[i // 4] for i in np.flatnonzero(~near)], bool(np.array_equal(*found, equal_nan=True))


def best_of_rows():
    """Rows whose largest value, or its first place, is another one than NumPy's."""
    scores = np.random.default_rng(2).random((4, 700), np.float32)
    scores[0, [699, 3, 259]], scores[1], scores[2, 699] = 2, -1, 2
    places, values = np.zeros(4, np.int32), np.zeros(4, np.float32)
    cuda.jit(best.build())[4, best.THREADS](scores.ravel(), 700, places, values)
    return np.flatnonzero((places != scores.argmax(1)) | (values != scores.max(1))).tolist()


if __name__ == "__main__":
    print(json.dumps({"beyond": beyond(), "limits": limits(), "best": best_of_rows()}))
