"""Every case of the tables on the CPU."""

import pytest

from cases.runners import Cpu
from cases.tables import ALL, TABLES


@pytest.mark.parametrize(("table", "name"), ALL)
def test_the_answer_is_that_of_the_reference(table, name):
    for scene in ("small", "large"):
        TABLES[table][name].check(scene, Cpu())
