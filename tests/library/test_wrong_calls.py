"""Wrong calls of all public functions: each is refused with few words that name what was asked, or rightly accepted."""

import warnings

import pytest
import wrong_batches
import wrong_crops
import wrong_images
import wrong_ops
import wrong_options
import wrong_plans
import wrong_tiles
import wrong_varied
from wrong_calls import Equal, Error, Same, equal, ready

import octopus
from octopus.backends import cuda

TABLES = (wrong_crops, wrong_options, wrong_plans, wrong_batches, wrong_ops, wrong_tiles, wrong_images, wrong_varied)
ROWS = [row for table in TABLES for row in table.ROWS]
LONGEST = 300  # characters of a message: it must be read, not scrolled


def test_rows_have_the_same_names_in_every_process():
    assert not [row.name for row in ROWS if "0x" in row.name]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_wrong_call_is_told_and_a_right_one_answered(row):
    if isinstance(row.expected, Error):
        if row.expected.kind is octopus.DeviceError and cuda.missing() is None:
            pytest.skip("this machine has a GPU")
        with pytest.raises(row.expected.kind) as told:
            row.call(**ready(row.given))
        message = str(told.value)
        assert row.expected.words in message and len(message) <= LONGEST, message
        assert "\n" not in message, message
        assert type(told.value) is row.expected.kind
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = row.call(**ready(row.given))
    right = row.call(**ready(row.expected.given)) if isinstance(row.expected, Same) else row.expected.answer
    within = row.expected.within if isinstance(row.expected, Same) else 0.0
    assert isinstance(row.expected, (Same, Equal)) and equal(found, right, within)


def test_they_are_as_many_as_the_library_was_once_tried_with():
    assert len(ROWS) >= 292
    functions = {row.name.partition("(")[0].partition("-")[0].partition(".")[0] for row in ROWS}
    public = {name for name in octopus.__all__ if not name.endswith("Error")} - {"get_num_threads"}
    assert public <= functions
