"""Video, orders of channels, and items that differ, without a GPU: the CUDA kernels' answers in Numba's simulator."""

from __future__ import annotations

SCRIPT = "simulate_items.py"
# Steps of 1 / 16 in float16, and whole levels; all others are float32.
LIMITS = {"fixed": 0.07, "uint8": 0.5 + 1e-3}


def test_every_kind_of_kernel_gives_the_answer_of_the_reference(answers):
    assert len(answers) == 62
    wrong = {
        name: value for name, value in answers.items() if not value <= LIMITS.get(name.split("-")[0], 1e-3)
    }
    assert not wrong
