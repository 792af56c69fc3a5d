"""Ragged batches of torch itself, on the CPU and the GPU, and of the other libraries that keep arrays there."""

import numpy as np
import pytest

from octopus import InputError, RaggedBatch
from octopus.backends.cuda import memory
from octopus.ragged import ops

pytestmark = pytest.mark.gpu

LENGTHS = (3, 0, 7, 1)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    return request.param


def nested_of(torch, device, inner=(), lengths=LENGTHS):
    items = [torch.rand(length, *inner, device=device) for length in lengths]
    return torch.nested.nested_tensor(items, layout=torch.jagged), items


@pytest.mark.parametrize("inner", [(), (1,), (4,), (2, 3)])
def test_nested_tensors_come_back(torch, device, inner):
    nested, items = nested_of(torch, device, inner)
    batch = RaggedBatch.from_torch(nested)
    assert (len(batch), batch.device, batch.inner) == (len(items), device, inner)
    assert batch.values.data_ptr() == nested.values().data_ptr()
    for found, item in zip(batch.offsets_to_host(), items, strict=True):
        assert torch.equal(found, item)
    back = batch.to_torch()
    assert back.offsets() is nested.offsets()
    assert back.values().data_ptr() == nested.values().data_ptr()
    tripled = ops.multiply(batch, 3.0).to_torch()
    assert torch.allclose((tripled + nested).values(), nested.values() * 4)


@pytest.mark.parametrize("inner", [(), (4,)])
def test_nothing_waits_for_the_gpu(torch, inner):
    nested, _ = nested_of(torch, "cuda", inner)
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch = RaggedBatch.from_torch(nested)
        batch.like(batch.values + 1).to_torch()
        RaggedBatch.from_offsets(batch.values, batch.offsets).to_torch()
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def test_padding_is_that_of_torch(torch):
    nested, _ = nested_of(torch, "cpu", (4,))
    assert torch.equal(RaggedBatch.from_torch(nested).to_padded(-1), nested.to_padded_tensor(-1.0))


def test_lists_of_tensors_replace_padding(torch, device):
    items = [torch.rand(length, 5, device=device) for length in LENGTHS]
    batch = RaggedBatch.from_list(items)
    assert batch.values.device.type == device
    for found, item in zip(batch, items, strict=True):
        assert torch.equal(found, item)
    nested = batch.to_torch()
    assert torch.equal(nested.to_padded_tensor(0.0), torch.nn.utils.rnn.pad_sequence(items, batch_first=True))


def test_holes_and_the_strided_layout_are_refused(torch, device):
    values, offsets, lengths = torch.arange(8.0), torch.tensor([0, 5, 8]), torch.tensor([2, 3])
    holes = torch.nested.nested_tensor_from_jagged(values.to(device), offsets.to(device), lengths=lengths.to(device))
    with pytest.raises(InputError, match="holes"):
        RaggedBatch.from_torch(holes)
    closed = RaggedBatch.from_torch(holes.contiguous()).offsets_to_host()
    assert [item.tolist() for item in closed] == [[0, 1], [5, 6, 7]]
    strided = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 2)], layout=torch.strided)
    with pytest.raises(InputError, match="strided"):
        RaggedBatch.from_torch(strided.to(device))
    assert RaggedBatch.from_list(strided.unbind()).shapes.tolist() == [[2, 3], [1, 2]]
    with pytest.raises(InputError, match=r"found \[2\]"):
        RaggedBatch.from_torch(nested_of(torch, device, (4,))[0].transpose(1, 2))


def test_values_that_are_not_contiguous_are_copied(torch, device):
    nested = nested_of(torch, device, (2, 3))[0].transpose(2, 3)
    batch = RaggedBatch.from_torch(nested).offsets_to_host()
    for found, item in zip(batch, nested.unbind(), strict=True):
        assert torch.equal(found, item)


def test_values_with_a_gradient_are_taken_without_it(torch, device):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, device=device)
    nested.requires_grad_(True)
    batch = RaggedBatch.from_torch(nested)
    assert not batch.values.requires_grad
    assert batch.values.data_ptr() == nested.values().data_ptr()


def test_items_of_arrays_on_the_gpu_are_parts_of_them():
    from numba import cuda

    values, offsets = np.arange(10, dtype=np.float32), np.array([0, 4, 10])
    for array in (memory.upload(values), cuda.to_device(values)):
        for bounds in (offsets, memory.upload(offsets), cuda.to_device(offsets)):
            batch = RaggedBatch.from_offsets(array, bounds).offsets_to_host()
            assert batch.device == "cuda"
            assert type(batch[1]) is type(array)
            assert batch[1].copy_to_host().tolist() == values[4:].tolist()
    shaped = RaggedBatch.from_arrays(memory.upload(values), [[2, 2], [3, 2]])
    assert shaped[1].copy_to_host().tolist() == [[4, 5], [6, 7], [8, 9]]


def test_arrays_of_octopus_become_nested_tensors(torch):
    values = memory.upload(np.arange(10, dtype=np.float32))
    nested = RaggedBatch.from_offsets(values, [0, 4, 10]).to_torch()
    assert nested.values().data_ptr() == values.pointer
    assert nested.unbind()[1].tolist() == [4, 5, 6, 7, 8, 9]
