"""Every opponent of the arena gives the answer that its name promises, or says why it can't run here."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from octopus_study.peers import registry
from octopus_study.peers.rival import Rival
from rivals import BOXES, EXACT, FRAME, NAMES, expected, job, levels, make

from octopus.errors import InputError

PACKAGES = {
    "roi-align": "torchvision",
    "grid-sample": "torch",
    "padded-torch": "torch",
    "dali": "nvidia.dali",
    "dali-slice": "nvidia.dali",
}
HALF = 256 * 2.0**-9  # levels: four roundings to half precision


def installed(package):
    """Whether Python finds a package, and not only the folder above it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def check(rival):
    """Both ways to the result give the same, right answer."""
    limit = HALF if rival.name.endswith("fp16") else EXACT
    rival.run()
    whole = rival.result().copy()
    assert levels(whole, expected(rival)) <= limit
    rival.prepare()
    rival.kernels()
    assert np.array_equal(rival.result(), whole)


@pytest.mark.parametrize("name", ["padded-onnxruntime", "onnxruntime-gridsample"])
def test_onnx_runtime_on_the_cpu(name):
    check(make(name, "cpu"))


@pytest.mark.parametrize("name", PACKAGES)
def test_optional_packages_on_the_cpu(name):
    made = make(name, "cpu")
    if installed(PACKAGES[name]):
        check(made)
    else:
        assert "is not installed" in made


@pytest.mark.parametrize("name", ["cvcuda", "cvcuda-scalar", "tensorrt-padded", "tensorrt-gridsample"])
def test_what_needs_a_gpu_says_so_or_that_it_is_missing(name):
    assert make(name, "cpu").endswith(("works on a GPU alone", "is not installed"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_on_the_gpu(name):
    made = make(name, "cuda")
    if isinstance(made, Rival):
        check(made)
    else:
        assert any(word in made for word in ("is not installed", "can't be loaded", "has no CUDA provider"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_kernels_on_the_gpu_see_a_new_frame(name):
    made = make(name, "cuda")
    if not isinstance(made, Rival):
        return
    made.run()
    before = made.result().copy()
    made.job.device_frame.copy_from_host(np.ascontiguousarray(255 - FRAME))
    made.kernels()
    changed = bool((made.result() != before).any())
    assert changed is not made.why_different.startswith(
        "resizes the padded"
    )  # that one reads the host's frame


def test_torch_results_and_the_allocator():
    made = make("grid-sample", "cpu")
    if isinstance(made, Rival):
        made.run()
        assert made.output() is made.output()
        assert made.allocator_peak() is None  # there is none on a CPU
    else:
        assert made.startswith("PyTorch is not installed")


@pytest.mark.parametrize(("name", "place"), registry.ARENA)
def test_registry_names_the_classes(name, place):
    module, _, kind = place.partition(":")
    found = getattr(import_module(module), kind)
    assert issubclass(found, Rival)
    assert found.name == name


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="there is no opponent 'opencl'"):
        registry.make("opencl", job("cpu"))


def test_names_are_distinct():
    assert len(set(NAMES)) == len(NAMES)


def test_a_read_only_frame_is_taken():
    made = make("onnxruntime-gridsample", "cpu")
    frozen = FRAME.copy()
    frozen.flags.writeable = False
    again = type(made)(
        type(made.job)(frozen, BOXES, made.job.size, made.job.mean, made.job.std, made.job.out)
    )
    check(again)
