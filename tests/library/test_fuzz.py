"""Random calls with guard pages around all memory: ten seconds here, five minutes in `make fuzz`; see `fuzz.py`.

`FUZZ_SECONDS` is the time of all kinds together, `FUZZ_SEED` chooses other calls.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fuzz
import fuzz_tiles
import numpy as np
import pytest
from guarded import Guard

SECONDS, SEED = float(os.environ.get("FUZZ_SECONDS", 10)), int(os.environ.get("FUZZ_SEED", 15))
KINDS = [kind for kind in fuzz.KINDS if kind not in fuzz.SLOW or "FUZZ_SECONDS" in os.environ]
LEAST = 3  # calls per second: on an idle core there are some dozens
COMPILING = 400  # seconds, on a machine that has never done it and is busy
ACROSS = """
import ctypes, fuzz, fuzz_tiles, sys
from pathlib import Path

def draw(drawn, kind):
    array = drawn.guard.array("array", (5,), "uint8", at_end=ATEND)
    def make():
        offset = array.ctypes.data + (array.nbytes if ATEND else -1)
        WHAT
    return "five bytes", make

fuzz_tiles.draw = draw
fuzz.loop("tiles", 1, 60, fuzz.Progress(Path(sys.argv[1])))
"""


def run(arguments, seconds):
    command, limit = [sys.executable, *arguments], seconds + COMPILING
    folder = Path(__file__).parent
    return subprocess.run(command, cwd=folder, timeout=limit, capture_output=True, text=True, check=False)


def reached(progress):
    return progress.read_text().partition("\0")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_any_call_is_right_and_stays_within_its_memory(kind, tmp_path):
    seconds, progress = SECONDS / len(KINDS), tmp_path / "progress"
    options = [kind, "--seed", str(SEED), "--seconds", str(seconds), "--progress", str(progress)]
    done = run(["fuzz.py", *options], seconds)
    if done.returncode < 0:
        pytest.fail(f"{signal.Signals(-done.returncode).name}\n{reached(progress)}{done.stderr[-2000:]}")
    assert not done.returncode, done.stderr[-4000:]
    found = json.loads(done.stdout)
    print(f"{kind}: {found['calls']} calls with seed {SEED} in {seconds:.0f} s, {found}")
    assert found["calls"] >= LEAST * seconds and found["refused"] < found["calls"] / 3


@pytest.mark.parametrize(("what", "at_end"), [
    ("ctypes.string_at(offset, 1)", True), ("ctypes.memset(offset, 0, 1)", False),
], ids=["read", "write"])  # fmt: skip
def test_a_byte_too_far_is_a_crash_whose_call_is_known(at_end, what, tmp_path):
    code = ACROSS.replace("WHAT", what).replace("ATEND", str(at_end))
    done = run(["-c", code, str(tmp_path / "progress")], 60)
    assert done.returncode == -signal.SIGSEGV, done.stderr
    assert reached(tmp_path / "progress").startswith("tiles: five bytes")


def test_a_wrong_answer_says_what_the_call_was(monkeypatch):
    monkeypatch.setattr(fuzz_tiles, "draw", lambda drawn, kind: ("frame (1, 2, 3)", lambda: 1 / 0))
    with pytest.raises(AssertionError, match=r"(?s)ZeroDivisionError.*tiles: frame \(1, 2, 3\), 1 threads"):
        fuzz.loop("tiles", 3, 1, fuzz.Progress(None))


def test_what_is_written_beside_an_array_is_seen():
    guard = Guard()
    array = guard.array("out", (3,), np.float32, at_end=True)
    region = guard.last
    array[:] = 1
    assert region.is_intact()
    ctypes.memset(array.ctypes.data - 1, 0, 1)
    assert not region.is_intact()
