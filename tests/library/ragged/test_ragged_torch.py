"""Ragged batches from and to torch, with a stand-in for it; `test_ragged_cuda.py` does the same with torch itself."""

import fake_torch
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from fake_torch import Nested, Tensor
from hypothesis import HealthCheck, given, settings

from octopus import InputError, RaggedBatch

ON_GPU = "cuda:0"


pytestmark = pytest.mark.usefixtures("torch_without_gpu")


def nested_of(items: list[np.ndarray], device: str = "cpu", offsets: str = "int64") -> Nested:
    bounds = np.cumsum([0, *[len(item) for item in items]]).astype(offsets)
    return Nested(Tensor(np.concatenate(items), device), Tensor(bounds, device))


ITEMS = st.tuples(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.sampled_from([(), (1,), (3,), (2, 2)]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=ITEMS, offsets=st.sampled_from(["int32", "int64"]), data=st.data())
def test_nested_tensors_come_back(drawn, offsets, data):
    lengths, inner = drawn
    items = [data.draw(hnp.arrays(np.float32, (length, *inner), elements=st.floats(width=32))) for length in lengths]
    nested = nested_of(items, offsets=offsets)
    batch = RaggedBatch.from_torch(nested)
    assert (len(batch), batch.shapes, batch.inner) == (len(items), None, inner)
    assert batch.values.data_ptr() == nested.values().data_ptr()
    for found, item in zip(batch, items, strict=True):
        assert found.array.tobytes() == item.tobytes() and found.shape == item.shape
    assert batch.to_padded().shape == (len(items), max(lengths), *inner)
    back = batch.to_torch()
    assert back.offsets() is nested.offsets() and back.values().shape == nested.values().shape
    assert back.values().data_ptr() == nested.values().data_ptr()


@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize("offsets", ["int32", "int64"])
def test_the_host_reads_nothing_of_the_gpu(inner, offsets):
    nested = nested_of([np.ones((4, *inner)), np.ones((2, *inner))], ON_GPU, offsets)
    batch = RaggedBatch.from_torch(nested)
    assert (batch.device, batch.offsets_on_host, len(batch)) == ("cuda", False, 2)
    assert batch.offsets.device.text == ON_GPU
    assert batch.offsets.array.tolist() == [0, 4 * max(sum(inner), 1), 6 * max(sum(inner), 1)]
    back = batch.like(Tensor(np.zeros(batch.size, np.float32), ON_GPU)).to_torch()
    assert back.offsets() is nested.offsets()
    assert back.values().shape == nested.values().shape
    made = RaggedBatch.from_offsets(batch.values, batch.offsets).to_torch()
    assert (made.offsets().device.text, made.offsets().dtype.name) == (ON_GPU, "int64")


def test_offsets_come_to_the_host_on_request():
    batch = RaggedBatch.from_torch(nested_of([np.ones((4, 2)), np.ones((1, 2))], ON_GPU))
    with pytest.raises(InputError, match="use offsets_to_host"):
        batch[0]
    batch = batch.offsets_to_host()
    assert batch.offsets.tolist() == [0, 8, 10]
    assert [item.shape for item in batch] == [(4, 2), (1, 2)]
    assert {item.device.text for item in batch} == {ON_GPU}
    with pytest.raises(InputError, match="to_padded_tensor"):
        batch.to_padded()
    with pytest.raises(InputError, match="from 0 to the 3 values"):
        RaggedBatch.from_offsets(Tensor(np.ones(3), ON_GPU), Tensor([0, 2, 4], ON_GPU)).offsets_to_host()


def test_a_batch_of_numpy_becomes_a_nested_tensor():
    batch = RaggedBatch.from_list([np.ones((3, 2)), np.zeros((1, 2))])
    nested = batch.to_torch()
    assert nested.values().shape == (4, 2)
    assert nested.values().data_ptr() == batch.values.ctypes.data
    assert nested.offsets().array.tolist() == [0, 3, 4]
    assert (nested._maybe_min_seqlen, nested._maybe_max_seqlen) == (1, 3)
    sequences = RaggedBatch.from_offsets(np.arange(5.0), [0, 2, 5]).to_torch()
    assert (sequences.values().shape, sequences.offsets().array.tolist()) == ((5,), [0, 2, 5])
    assert RaggedBatch.from_arrays(np.zeros(0), np.zeros((0, 2), int)).to_torch().values().shape == (0, 0)


def test_offsets_of_the_host_follow_values_to_the_gpu():
    batch = RaggedBatch.from_list([Tensor(np.ones(3), ON_GPU), Tensor(np.ones(2), ON_GPU)])
    assert (batch.device, batch.offsets.tolist(), batch[1].shape) == ("cuda", [0, 3, 5], (2,))
    assert batch.to_torch().offsets().device.text == ON_GPU


def test_a_list_of_tensors_becomes_tensors():
    batch = RaggedBatch.from_list([Tensor(np.ones((2, 3))), Tensor(np.zeros((1, 2)))])
    assert isinstance(batch.values, Tensor) and batch[1].shape == (1, 2)
    padded = batch.to_padded(fill=5)
    assert isinstance(padded, Tensor) and padded.array[1].tolist() == [[0, 0, 5], [5, 5, 5]]


def small(**options) -> Nested:
    return Nested(Tensor(np.ones((4, 2))), Tensor([0, 3, 4]), **options)


def test_arrow_has_no_arrays_on_a_gpu():
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="in host memory"):
        RaggedBatch.from_offsets(Tensor([1.0], ON_GPU), [0, 1]).to_arrow()


@pytest.mark.parametrize(("make", "words"), [
    (lambda: RaggedBatch.from_torch(np.ones(3)), "found an ndarray"),
    (lambda: RaggedBatch.from_torch(Tensor(np.ones(3))), "for tensors use RaggedBatch.from_list"),
    (lambda: RaggedBatch.from_torch(small(layout=fake_torch.strided)), r"from_list\(nested.unbind\(\)\)"),
    (lambda: RaggedBatch.from_torch(small(lengths=Tensor([1, 1]))), r"holes .* nested.contiguous\(\)"),
    (lambda: RaggedBatch.from_torch(small(axis=2)), r"must be axis 1 .* found \[2\]"),
    (lambda: RaggedBatch.from_torch(nested_of([np.ones((2, 0))])), r"\(j, 0\) have no elements"),
    (lambda: RaggedBatch(small(), [0, 8]), "use RaggedBatch.from_torch"),
    (lambda: RaggedBatch.from_list([Tensor([1.0]), np.ones(1)]), "one library"),
    (lambda: RaggedBatch.from_list([Tensor([1.0]), Tensor([1.0], ON_GPU)]), "one device"),
    (lambda: RaggedBatch.from_list([Tensor([1.0]), Tensor([1])]), "share dtype and dimensions"),
    (lambda: RaggedBatch.from_list([np.ones((1, 2)), np.ones((1, 3))]).to_torch(), "differ in j alone"),
    (lambda: RaggedBatch.from_list([np.float32(1)]).to_torch(), "differ in j alone"),
    (lambda: RaggedBatch.from_torch(small()).to_arrow(), "items of one dimension"),
    (lambda: RaggedBatch.from_offsets(np.ones(2, np.longdouble), [0, 2]).to_torch(), "can't take the values"),
    (lambda: RaggedBatch.from_offsets(np.ones(2), Tensor([0, 2], ON_GPU)), "found values on the host"),
    (lambda: RaggedBatch.from_offsets(Tensor([1.0], "cuda:1"), Tensor([0, 1], ON_GPU)), "values are on GPU 1"),
    (lambda: RaggedBatch.from_offsets(Tensor([1.0], ON_GPU), Tensor([0.0, 1.0], ON_GPU)), "int32 or int64"),
    (lambda: RaggedBatch.from_offsets(Tensor([1.0], ON_GPU), Tensor([[0, 1]], ON_GPU)), "one dimension"),
    (lambda: RaggedBatch(Tensor([1.0], ON_GPU), Tensor([0, 1], ON_GPU), [[1], [0]]), "need 3 offsets"),
    (lambda: RaggedBatch.from_torch(nested_of([np.ones(2)], ON_GPU)).like(np.ones(2)), "values on the host"),
    (lambda: RaggedBatch.from_offsets(Tensor([1.0], ON_GPU), Tensor(np.zeros(0, int), ON_GPU)), "no offsets"),
])  # fmt: skip
def test_what_is_refused_says_what_to_do(make, words):
    with pytest.raises(InputError, match=words):
        make()
