"""Nothing that the report makes of the committed references changes by accident."""

import sys
from pathlib import Path

from digests import made, stored

sys.path.append(str(Path(__file__).parents[1] / "study/report"))
from frames import build_report


def test_every_number_table_figure_and_claim_of_the_references_is_as_recorded(root, once):
    """A change on purpose renews the record: ``python tests/golden/digests.py``."""
    report = once("references", lambda folder: build_report(folder, None, root / "data/reference"))
    assert made(root, report) == stored()
