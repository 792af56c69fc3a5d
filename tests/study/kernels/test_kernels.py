"""The study's own kernels without a GPU: answers in the simulator, and PTX for every GPU named."""

import pytest

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus_study.kernels.cuda import probes, ragged_probes, video

SCRIPT = "simulate.py"


def test_the_published_kernels_round_between_their_passes_and_are_else_the_reference(answers):
    assert 0.01 < answers["published"] <= 0.5 / 2 + 1e-3  # half a level, divided by the smallest std


def test_bytes_of_a_video_s_frame_are_those_of_the_conversion_rounded(answers):
    assert 0.4 < answers["video"] <= 0.5 + 1e-4


@pytest.mark.parametrize("name", [*probes.KERNELS, "to_rgb"])
def test_the_probes_and_the_conversion(capability, name):
    assert name in entry_name(to_ptx((probes.KERNELS | {"to_rgb": video.to_rgb})[name], capability))


@pytest.mark.parametrize("name", ["table", "image_per_thread", "linear_search", "differ"])
def test_the_kernels_on_ragged_batches(capability, name):
    assert entry_name(to_ptx(ragged_probes.kernel_of(name), capability))
