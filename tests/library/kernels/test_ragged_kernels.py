"""The kernels on ragged batches without a GPU: answers in Numba's simulator, and PTX for every GPU named."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numba.cuda.dispatcher
import pytest
from octopus_study.kernels.cuda import ragged_probes

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus.kernels.cuda import ragged
from octopus.kernels.cuda.ragged_tiles import BLOCKS_PER_SM, Kind, Shape, shape_for
from octopus.ragged.blockmap import STRATEGIES

CAPABILITIES = {"T4": (7, 5), "Jetson Orin": (8, 7), "RTX 4090": (8, 9), "H200": (9, 0)}


@pytest.fixture(scope="module")
def found():
    script = Path(__file__).with_name("simulate_ragged.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def limit(name):
    """Bytes are rounded once more behind float32 products and powers, so that a tie may fall either way."""
    if "uint8" not in name:
        return 1e-5
    return 1 if name.startswith(("multiply", "gamma")) else 1e-4


def test_every_kind_of_kernel_gives_the_answer_of_the_reference(found):
    assert len(found["worst"]) == 6 * 2 * 4 * 3
    assert {name: value for name, value in found["worst"].items() if not value <= limit(name)} == {}


def test_all_strategies_give_the_same_bits(found):
    assert found["unlike"] == []


def test_values_behind_the_last_offset_belong_to_the_last_item(found):
    assert found["beyond"] < 1e-6


@pytest.fixture(params=CAPABILITIES.values(), ids=CAPABILITIES)
def capability(request, monkeypatch):
    device = SimpleNamespace(compute_capability=request.param)
    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: device)
    return request.param


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("operation", "dtype", "values"), [("multiply", "float32", 4), ("blur3x3", "uint8", 4)]
)
def test_kernels_compile_for_every_gpu_without_local_memory(strategy, operation, dtype, values, capability):
    kind = Kind(operation, strategy, dtype, dtype, "int64", values, 4, 128)
    ptx = to_ptx(ragged.build(kind), ragged.argument_types(kind), capability)
    assert "local_depot" not in ptx and "call" not in re.sub(r"//.*", "", ptx)


def test_memory_bound_operations_load_and_store_sixteen_bytes(capability):
    for dtype, values, store in (
        ("float32", 4, r"st\.global\.cs\.v4\.f32"),
        ("uint8", 16, r"st\.global\.cs\.v4\.b32"),
    ):
        kind = Kind("multiply", "block_search", dtype, dtype, "int32", values, 4, 128)
        ptx = to_ptx(ragged.build(kind), ragged.argument_types(kind), capability)
        assert len(re.findall(r"ld\.global\.nc\.L1::no_allocate\.v4", ptx)) >= 4
        assert re.search(store, ptx)


@pytest.mark.parametrize("name", ["table", "image_per_thread", "linear_search", "differ"])
def test_the_studies_kernels_compile(name, capability):
    assert entry_name(to_ptx(*ragged_probes.signature(name), capability))


def test_small_batches_get_as_many_blocks_as_they_can():
    large = shape_for("multiply", "block_search", "float32", 10**8, 1000, 132)
    small = shape_for("multiply", "block_search", "float32", 10**5, 1000, 132)
    assert large == Shape(4, 4, 128) and small.packs == 1
    assert small.blocks(10**5) > large.blocks(10**5)
    assert large.blocks(10**8) >= BLOCKS_PER_SM * 132


def test_what_is_not_aligned_or_too_small_for_packs_goes_one_by_one():
    for dtype, operation in product(("float32", "uint8"), ("multiply", "blur3x3")):
        assert shape_for(operation, "block_search", dtype, 10**8, 10, 132, aligned=False).values == 1
    assert shape_for("blur3x3", "block_search", "float32", 10**8, 10**6, 132).values == 1
    assert shape_for("multiply", "block_search", "uint8", 10**8, 10**6, 132).values == 16
