"""How many files and functions of the library a call enters: a cold one in a fresh process, a warm one beside it."""

import subprocess
import sys

import numpy as np
from profiled import entered

from octopus import CropPlan, crop_resize

COLD = """
import numpy as np
import octopus
from profiled import entered

def call():
    octopus.crop_resize(np.zeros((9, 9, 3), np.uint8), [[1, 2, 7, 8]], 8, device="cpu")

print(len({file for file, _ in entered(call)}))
"""


def test_a_first_call_enters_at_most_40_files(tmp_path, monkeypatch):
    """What is imported and compiled on the way counts, too."""
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    assert int(subprocess.run([sys.executable, "-c", COLD], check=True, capture_output=True).stdout) <= 40


def test_a_warm_call_enters_few_files_and_functions():
    frame, boxes = np.zeros((9, 9, 3), np.uint8), np.array([[1, 2, 7, 8]])
    run = CropPlan(frame, 1, 8, device="cpu").run
    for call, most in ((run, 12), (lambda *given: crop_resize(*given, 8, device="cpu"), 16)):
        call(frame, boxes)
        found = entered(call, frame, boxes)
        assert len({file for file, _ in found}) <= 7 and len(found) <= most, found
