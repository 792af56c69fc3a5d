"""The conversion of an NV12 frame ahead of its crops: its bytes, without a GPU, and PTX for every GPU named."""

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus_study.kernels.cuda import video

SCRIPT = "simulate_video.py"


def test_bytes_are_those_of_the_conversion_rounded(answers):
    assert 0.4 < answers <= 0.5 + 1e-4


def test_it_compiles(capability):
    assert "to_rgb" in entry_name(to_ptx(video.to_rgb, capability))
