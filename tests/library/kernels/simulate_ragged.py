"""Runs the kernels of `gamma` in Numba's simulator, in a process of its own; other operations stand in `cases.ragged`.

Prints as JSON what its tables do unlike working out each byte, what it gives at its limits, how exact its powers are,
and the largest difference where values go on behind the last offset.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import product
from pathlib import Path

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from cases.simulate import simulate
from numba import cuda

from octopus.kernels.cuda import ragged, ragged_power, ragged_table
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


def by_table():
    """Blocks that make tables: what differs from working out each byte, and whether all ways were taken.

    Tiles of 64 to 256 bytes with one item or several, some of them empty, ending within a pack or with it, more than a
    block makes tables of, and a last block that is not full; values behind the last offset; and in place.
    """
    random, made, wrong = np.random.default_rng(2), [], []
    sizes = [700, 1, 0, 15, 16, 33, 0, 64, 512, *[3] * 40, 300, 0]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    exponents = random.uniform(0.2, 3, len(sizes)).astype(np.float32)
    exponents[[0, 5, 8]] = 0, -1, 40

    def run(strategy, values, packs, source, out):
        return gamma(strategy, (values, packs), source, out, offsets, exponents)

    def counting(threads):
        fill = filler(threads)

        @cuda.jit(device=True)
        def counted(levels, tables, exponent):
            made.append(float(exponent))
            fill(levels, tables, exponent)

        return counted

    filler, ragged_table.filler, ragged_table.TABLE_ITEM = ragged_table.filler, counting, 16
    for rest in (0, 5):
        source = random.integers(0, 256, offsets[-1] + rest, np.uint8)
        right = run("thread_search", 1, 1, source, np.zeros_like(source))
        for packs in (1, 4):
            made.clear()
            found = run("block_search", 16, packs, source, np.zeros_like(source))
            # Items of three bytes are too many for tables, and the others have some.
            if not np.array_equal(found, right) or not 5 < len(set(made)) < len(sizes) - 30:
                wrong.append((packs, rest))
            values = source.copy()
            if not np.array_equal(run("block_search", 16, packs, values, values), right):
                wrong.append((packs, rest, "in place"))
    return wrong


LIMITS = (
    (0, 0.5), (0, 0), (0, -1), (1, 3.5), (1, 1e30), (1e-45, 0.01), (1e-38, 0.1), (1e-20, 2), (1, 0), (2, 0),
    (float("nan"), 2), (float("nan"), 0), (-2, 3), (-2, 2), (-2, 0.5), (-0.5, -1), (0.5, -16), (2, 200), (0.5, 16.5),
    (0.99999994, 1e6), (0.5, 160), (0.5, 130), (3, 0.5), (1e30, 2), (1e30, -2), (2.1e31, 0.5), (float("inf"), 0.5),
    (float("inf"), -1), (0.25, float("inf")), (0.25, float("nan")), (3e38, 1), (5, 16), (0, 1e-30), (0.5, 1e-30),
)  # fmt: skip


def limits():
    """What `gamma` gives for unusual values and exponents unlike NumPy, and whether packs give the same."""
    values, exponents = np.array(LIMITS, np.float32).T.copy()
    offsets = np.arange(0, 4 * len(values) + 1, 4, dtype=np.int32)
    # Among three usual values of the same pack, at each place in turn.
    source = np.full((len(values), 4), 0.7, np.float32)
    source[np.arange(len(values)), np.arange(len(values)) % 4] = values
    source = source.ravel()
    found = []
    for shape in ((1, 1), (4, 1)):
        found.append(gamma("block_search", shape, source, np.zeros_like(source), offsets, exponents))
    with np.errstate(all="ignore"):
        right = (source.astype(np.float64) ** np.repeat(exponents, 4).astype(np.float64)).astype(np.float32)
        off = np.abs(found[0].astype(np.float64) / np.where(right == 0, 1, right) - 1)
    same = (found[0] == right) | (np.isnan(found[0]) & np.isnan(right))
    small = np.abs(right) < 1e-37  # where float32 has fewer digits
    unlike = ~same & ~(off < 2e-6) & ~(small & (np.abs(found[0] - right) < 1e-44))
    return [LIMITS[i // 4] for i in np.flatnonzero(unlike)], bool(np.array_equal(*found, equal_nan=True))


def powers():
    """The largest relative error of `power` by exponent, with an exact `2 ** x`, as a share of the allowed one."""
    random, worst = np.random.default_rng(4), {}
    values = np.concatenate([
        random.random(20_000, np.float32), np.exp2(random.uniform(-149, 104, 20_000)).astype(np.float32),
        1 + random.uniform(-1e-3, 1e-3, 10_000).astype(np.float32), np.float32([2**-149, 2**-126, 1]),
    ])  # fmt: skip
    values = values[values > 0]
    for exponent in (*random.uniform(-16, 16, 20).astype(np.float32), *np.float32([0.45, 0.5, 1, 2.2, 2.5, 16])):
        right = values.astype(np.longdouble) ** np.longdouble(exponent)
        normal = (right > 2**-125) & (right < 2**127)
        with np.errstate(all="ignore"):
            error = np.abs(ragged_power.power(values, exponent)[normal] / right[normal] - 1).max()
        worst[float(exponent)] = float(error / (1.8e-7 + 3e-8 * abs(exponent)))
    return worst


if __name__ == "__main__":
    print(json.dumps({"beyond": beyond(), "limits": limits(), "powers": powers(), "by_table": by_table()}))
