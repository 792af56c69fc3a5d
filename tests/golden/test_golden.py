"""Nothing that the report makes of the committed references changes by accident."""

from digests import made, stored


def test_every_number_table_figure_and_claim_of_the_references_is_as_recorded(root):
    """A change on purpose renews the record: ``python tests/golden/digests.py``."""
    assert made(root) == stored()
