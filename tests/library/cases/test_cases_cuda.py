"""Every case of the tables on a GPU."""

import pytest

from cases.runners import Gpu
from cases.tables import ALL, TABLES

pytestmark = pytest.mark.gpu


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("table", "name"), ALL)
def test_the_answer_is_that_of_the_reference(table, name):
    for scene in ("small", "large"):
        TABLES[table][name].check(scene, Gpu())
