"""Random calls with guard pages around all memory: ten seconds here, five minutes in `make fuzz`; see `fuzz.py`.

`FUZZ_SECONDS` is the time of all kinds together, `FUZZ_SEED` chooses other calls.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fuzz
import numpy as np
import pytest
from guarded import Guard

SECONDS, SEED = float(os.environ.get("FUZZ_SECONDS", 10)), int(os.environ.get("FUZZ_SEED", 15))
KINDS = [kind for kind in fuzz.KINDS if kind not in fuzz.SLOW or "FUZZ_SECONDS" in os.environ]
LEAST = 10  # calls per second: on an idle core there are some hundreds
COMPILING = 400  # seconds, on a machine that has never done it and is busy
ACROSS = """
from types import SimpleNamespace
import fuzz, guarded, sys
from pathlib import Path

def touch(number):
    if number == 7:
        array = guard.array("array", (5,), "uint8", at_end=ATEND)
        region = guard.last
        offset = array.ctypes.data + (array.nbytes if ATEND else -1)
        WHAT
    return 0.0

guard = guarded.Guard()
fuzz.made = lambda kind, seed, number, guard: SimpleNamespace(check=lambda: touch(number))
fuzz.loop("tiles", 1, 60, fuzz.Progress(Path(sys.argv[1])))
"""


def run(arguments, seconds):
    command, limit = [sys.executable, *arguments], seconds + COMPILING
    folder = Path(__file__).parent
    return subprocess.run(command, cwd=folder, timeout=limit, capture_output=True, text=True, check=False)


def reached(progress):
    return int(np.fromfile(progress, np.int64)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_any_call_is_right_and_stays_within_its_memory(kind, tmp_path):
    seconds, progress = SECONDS / len(KINDS), tmp_path / "progress"
    options = [kind, "--seed", str(SEED)]
    done = run(["fuzz.py", *options, "--seconds", str(seconds), "--progress", str(progress)], seconds)
    if done.returncode < 0:
        number = reached(progress)
        shown = run(["fuzz.py", *options, "--case", str(number), "--show"], 0).stdout
        name = signal.Signals(-done.returncode).name
        pytest.fail(f"{name}\n{shown}again: {fuzz.command(kind, SEED, number)}\n{done.stderr[-2000:]}")
    assert not done.returncode, done.stderr[-4000:]
    found = json.loads(done.stdout)
    print(f"{kind}: {found} with seed {SEED} in {seconds:.0f} s")
    assert found["calls"] >= LEAST * seconds and found["refused"] < found["calls"] / 3


@pytest.mark.parametrize(
    ("at_end", "what"), [(True, "read"), (False, "read"), (True, "write"), (False, "write")]
)
def test_a_byte_too_far_is_a_crash_whose_case_is_known(at_end, what, tmp_path):
    deed = {
        "read": "import ctypes; ctypes.string_at(offset, 1)",
        "write": "import ctypes; ctypes.memset(offset, 0, 1)",
    }
    done = run(
        ["-c", ACROSS.replace("WHAT", deed[what]).replace("ATEND", str(at_end)), str(tmp_path / "progress")],
        60,
    )
    assert done.returncode == -signal.SIGSEGV, done.stderr
    assert reached(tmp_path / "progress") == 7


def test_a_failure_says_how_to_repeat_it(monkeypatch):
    class Wrong:
        def check(self):
            raise AssertionError("5 of the tolerance")

        def __str__(self):
            return "frame (1, 2, 3)"

    monkeypatch.setattr(fuzz, "made", lambda *given: Wrong())
    words = r"(?s)5 of the tolerance.*frame \(1, 2, 3\).*fuzz.py crop --seed 3 --case 8"
    with pytest.raises(AssertionError, match=words):
        fuzz.checked("crop", 3, 8, Guard())


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_case_follows_from_its_number_alone(kind):
    guard = Guard()
    first = [str(fuzz.made(kind, 4, number, guard)) for number in range(20)]
    assert first == [str(fuzz.made(kind, 4, number, Guard())) for number in range(20)]
    assert len(set(first)) == 20


def test_what_is_written_beside_an_array_is_seen():
    guard = Guard()
    array = guard.array("out", (3,), np.float32, at_end=True)
    region = guard.last
    array[:] = 1
    assert region.is_intact()
    ctypes.memset(array.ctypes.data - 1, 0, 1)
    assert not region.is_intact()
