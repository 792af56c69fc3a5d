"""What all tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
ROOT = Path(__file__).resolve().parents[1]
CAPABILITIES = {"T4": (7, 5), "Jetson Orin": (8, 7), "RTX 4090": (8, 9), "H200": (9, 0)}


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the repository."""
    return ROOT


@pytest.fixture(params=CAPABILITIES.values(), ids=CAPABILITIES)
def capability(request, monkeypatch):
    """Device functions ask the current device for its capability; here there is none to ask."""
    pytest.importorskip("numba_cuda")
    import numba.cuda.dispatcher

    device = SimpleNamespace(compute_capability=request.param)
    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: device)
    return request.param


@pytest.fixture(scope="module")
def answers(request):
    """What the script that the test's module names as `SCRIPT` printed: answers of Numba's simulator."""
    script = Path(request.module.__file__).with_name(request.module.SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
