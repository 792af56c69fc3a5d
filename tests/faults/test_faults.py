"""Every fault fits the code and names what must fail; two are injected here, the others by `make faults`."""

from pathlib import Path

import pytest
import run
from catalogue import BY_ID, FAULTS, VERIFY, Fault

from octopus_study.verify import checks

BUILT = "paper/build/"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_fault_fits_its_file_and_names_checks_or_tests_that_exist(fault: Fault, root: Path) -> None:
    if not fault.file.startswith(BUILT):
        source = (root / fault.file).read_text(encoding="utf-8")
        assert fault.edit(source) != source
    for by in fault.fails:
        if by.startswith(VERIFY):
            assert by.removeprefix(VERIFY) in checks.CHECKS
        else:
            path, _, function = by.partition("::")
            assert f"def {function.partition('[')[0]}" in (root / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cut-csv", "at-least-by-the-high-end"])
def test_a_fault_is_noticed_in_a_copy(name: str) -> None:
    assert [result.line for result in run.run([BY_ID[name]]) if not result.noticed] == []


def test_a_fault_that_changes_nothing_is_missed() -> None:
    harmless = BY_ID["millivolts"]._replace(edit=lambda source: f"{source}\n")
    assert [result.noticed for result in run.run([harmless])] == [False]
