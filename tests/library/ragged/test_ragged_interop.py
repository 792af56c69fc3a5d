"""Ragged batches from and to Arrow; packages that are missing."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from octopus import InputError, RaggedBatch
from octopus.ragged import ops

NUMBERS = {
    "float32": st.floats(width=32, allow_nan=False), "float64": st.floats(allow_nan=False),
    "uint8": st.integers(0, 255), "int64": st.integers(-(2**63), 2**63 - 1),
}  # fmt: skip


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


@pytest.fixture
def signals(pa):
    return pa.array([[1, 2], [], [3, 4, 5], [6]], pa.list_(pa.float32()))


def address(array) -> int:
    """Where the elements of all lists lie."""
    return array.values.buffers()[1].address


@st.composite
def list_arrays(draw):
    """Arrays of each type of list, whole and cut, in one or several chunks."""
    import pyarrow as pa

    dtype = draw(st.sampled_from(sorted(NUMBERS)))
    element = pa.from_numpy_dtype(np.dtype(dtype))
    kind = draw(st.sampled_from([pa.list_(element), pa.large_list(element), pa.list_(element, 3)]))
    side = {"min_size": 3, "max_size": 3} if pa.types.is_fixed_size_list(kind) else {"max_size": 5}
    lists = draw(st.lists(st.lists(NUMBERS[dtype], **side), max_size=8))
    array = pa.array(lists, kind)
    start = draw(st.integers(0, len(lists)))
    array = array.slice(start, draw(st.integers(0, len(lists) - start)))
    return pa.chunked_array([array, array]) if draw(st.booleans()) else array


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=list_arrays())
def test_lists_of_arrow_come_back(pa, array):
    batch = RaggedBatch.from_arrow(array)
    assert batch.dtype == array.type.value_type.to_pandas_dtype()
    assert [item.tolist() for item in batch] == array.to_pylist()
    for large in (False, True):
        back = batch.to_arrow(large)
        back.validate(full=True)
        assert back.to_pylist() == array.to_pylist()
        assert pa.types.is_large_list(back.type) == large


def test_values_are_shared_with_arrow(pa, signals):
    batch = RaggedBatch.from_arrow(signals)
    assert batch.values.ctypes.data == address(signals)
    assert address(batch.to_arrow()) == address(signals)
    assert RaggedBatch.from_arrow(signals[2:]).values.ctypes.data == address(signals) + 2 * 4
    column = pa.table({"signal": signals})["signal"]
    assert RaggedBatch.from_arrow(column).values.ctypes.data == address(signals)
    with pytest.raises(ValueError, match="read-only"):
        batch[0][0] = 1


def test_arrays_of_other_makers_come_by_the_c_interface(pa, signals):
    class Array:
        def __arrow_c_array__(self, schema=None):
            return signals.__arrow_c_array__(schema)

    class Stream:
        def __arrow_c_stream__(self, schema=None):
            return pa.chunked_array([signals]).__arrow_c_stream__(schema)

    for maker in (Array(), Stream()):
        batch = RaggedBatch.from_arrow(maker)
        assert batch.values.ctypes.data == address(signals)
        assert batch.to_arrow().equals(signals)


def test_operations_read_the_memory_of_arrow(signals):
    scaled = ops.multiply(RaggedBatch.from_arrow(signals[1:]), [1, 10, 0.5], device="cpu")
    assert scaled.to_arrow().to_pylist() == [[], [30, 40, 50], [3]]


def test_nulls_outside_a_slice_do_not_matter(pa):
    array = pa.array([None, [1.0, None], [2.0, 3.0]])
    assert RaggedBatch.from_arrow(array[2:])[0].tolist() == [2, 3]


@pytest.mark.parametrize(("make", "words"), [
    (lambda pa: pa.array([[1.0], None, None]), "2 lists are null; drop them"),
    (lambda pa: pa.array([[1.0, None], [2.0]]), "1 elements are null; fill them"),
    (lambda pa: pa.array([[[1.0]]]), "found list<.*flatten the inner lists"),
    (lambda pa: pa.array([[True]]), "found bool; cast"), (lambda pa: pa.array([["a"]]), "found string"),
    (lambda pa: pa.array([1.0]), "found double; cast the array"),
    (lambda pa: pa.array([[1]], pa.list_view(pa.int32())), "found list_view"),
    (lambda pa: pa.table({"x": [[1.0]]}), "found struct"), (lambda pa: [[1.0]], "found a list"),
])  # fmt: skip
def test_what_is_no_list_of_numbers(pa, make, words):
    with pytest.raises(InputError, match=words):
        RaggedBatch.from_arrow(make(pa))


@pytest.mark.parametrize(("batch", "words"), [
    (RaggedBatch.from_list([np.zeros((2, 2))]), "items of one dimension"),
    (RaggedBatch.from_offsets(np.zeros(2, bool), [0, 2]), "found bool"),
    (RaggedBatch.from_offsets(np.zeros(2, np.complex64), [0, 2]), "found complex64"),
])  # fmt: skip
@pytest.mark.usefixtures("pa")
def test_what_arrow_does_not_take(batch, words):
    with pytest.raises(InputError, match=words):
        batch.to_arrow()


@pytest.mark.usefixtures("pa")
def test_more_elements_than_offsets_of_32_bits_count():
    values = np.zeros(2**31, np.uint8)  # never touched, so never in memory
    batch = RaggedBatch.from_offsets(values, [0, 2**31])
    with pytest.raises(InputError, match="large=True"):
        batch.to_arrow()
    assert batch.to_arrow(large=True).value_lengths().to_pylist() == [2**31]
