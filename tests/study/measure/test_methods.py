"""The check of answers before any timing."""

import logging
import math

import numpy as np
import pytest

from octopus.errors import InputError
from octopus_study.measure import Method, again, check_answers, methods

REFERENCE = np.linspace(0, 255, 60, dtype=np.float32).reshape(5, 12)


def answer(result, tolerance=1e-3, why=""):
    method = Method("m", lambda: None, lambda: result, tolerance, why)
    return check_answers([method], REFERENCE)["m"]


def changed(value, index=(2, 3)):
    copy = REFERENCE.copy()
    copy[index] = value
    return copy


def test_the_right_answer_is_the_same_and_a_known_reason_stands_beside_an_error():
    assert answer(REFERENCE.copy()) == answer(REFERENCE + np.float32(5e-4)) == "same"
    found = answer(REFERENCE + 1, why="rounds to uint8")
    assert (found.status, found.reason, found.error) == ("different", "rounds to uint8", pytest.approx(1))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_never_passes(value):
    assert answer(changed(value), tolerance=1e9) == "different: 1 of 60 values are NaN or infinite"


def test_shape_and_type_must_agree():
    assert answer(REFERENCE.T) == "different: shape (12, 5), expected (5, 12)"
    assert answer(REFERENCE.astype(np.float64)) == "different: dtype float64, expected float32"
    assert answer(REFERENCE[:0]).startswith("different: shape")


def test_the_comparison_goes_over_all_chunks(monkeypatch):
    monkeypatch.setattr(methods, "_CHUNK", 7)
    assert answer(REFERENCE.copy()) == "same"
    assert answer(changed(-9.0, index=(4, 11))).startswith("different: by as much as 264")
    assert answer(changed(math.nan, index=(4, 11))).startswith("different: 1 of 60")


def test_a_method_that_fails_is_unavailable_and_logged(caplog):
    def broken():
        raise RuntimeError("no such kernel")

    found = [Method("a", broken, lambda: REFERENCE), Method("b", lambda: None, broken), again(Method("a", broken))]
    with caplog.at_level(logging.WARNING):
        answers = check_answers(found, REFERENCE)
    assert answers == dict.fromkeys(["a", "b", "a-again"], "unavailable: RuntimeError: no such kernel")
    assert "a: unavailable: RuntimeError: no such kernel" in caplog.text


def test_methods_without_a_result_have_no_answer():
    ran = []
    assert check_answers([Method("write", lambda: ran.append(1))], None) == {"write": "n/a"}
    assert ran == [1]


def test_a_reference_that_lets_everything_pass_is_refused():
    with pytest.raises(InputError, match="NaN or infinity"):
        check_answers([Method("m", lambda: None, lambda: REFERENCE)], changed(math.nan))
    with pytest.raises(InputError, match="no reference"):
        check_answers([Method("m", lambda: None, lambda: REFERENCE)], None)
