"""Every case of the tables on a pretended GPU, whose kernels run in Numba's simulator; see `simulate`."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cases.tables import ALL, TABLES

PARTS = {"crops": 2}  # processes


@pytest.fixture(scope="module")
def simulated():
    """What is wrong with each case."""

    def part(table, number):
        script = Path(__file__).with_name("simulate.py")
        command = [sys.executable, script, table, str(number), str(PARTS.get(table, 1))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stderr
        return {(table, name): words for name, words in json.loads(done.stdout).items()}

    jobs = [(table, number) for table in TABLES for number in range(PARTS.get(table, 1))]
    with ThreadPoolExecutor(2) as pool:
        return {key: words for found in pool.map(part, *zip(*jobs, strict=True)) for key, words in found.items()}


@pytest.mark.parametrize(("table", "name"), ALL)
def test_the_answer_is_that_of_the_reference(simulated, table, name):
    assert simulated[table, name] == ""
