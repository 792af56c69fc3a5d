"""The study's own kernels without a GPU: answers of the published ones, and PTX of the probes for every GPU named."""

import pytest

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus_study.kernels.cuda import probes, ragged_probes

SCRIPT = "simulate_published.py"


def test_the_published_kernels_round_between_their_passes_and_are_else_the_reference(answers):
    assert 0.01 < answers <= 0.5 / 2 + 1e-3  # half a level, divided by the smallest std


@pytest.mark.parametrize("name", probes.KERNELS)
def test_the_probes(capability, name):
    assert name in entry_name(to_ptx(probes.KERNELS[name], capability))


@pytest.mark.parametrize("name", ["table", "image_per_thread", "linear_search", "differ"])
def test_the_kernels_on_ragged_batches(capability, name):
    assert entry_name(to_ptx(ragged_probes.kernel_of(name), capability))
