"""Images of different size through torch's `DataLoader`: the batches are the images, whoever made and sent them."""

from __future__ import annotations

import re
import warnings
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from octopus import RaggedBatch, get_num_threads, images  # noqa: E402
from octopus.errors import InputError  # noqa: E402
from octopus.integrations.loader import ragged  # noqa: E402

COUNT, BATCH = 23, 4  # the last batch has three
CALL = {"filter": "bicubic", "rounding": "pillow", "scale": 255, "mean": 0.5, "std": 0.5}
WORKERS = [(0, None), (1, "fork"), (2, "fork"), (1, "spawn"), (2, "spawn")]


class Folder:
    """Images that are made where they are asked for, each of a size and with values of its own."""

    def __init__(self, count=COUNT, tensors=False, dtype="uint8"):
        self.count, self.tensors, self.dtype = count, tensors, dtype

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = np.random.default_rng(index)
        height, width = generator.integers(6, 90, 2)
        made = generator.integers(0, 256, (height, width, 3), np.uint8).astype(self.dtype)
        made = made[:, ::-1] if index % 2 else made  # a view, as many decoders' are
        return torch.from_numpy(made.copy()).permute(2, 0, 1) if self.tensors else made


class Labelled(Folder):
    """Images with a label."""

    def __getitem__(self, index):
        return super().__getitem__(index), index


def labelled(samples):
    """What a user writes around `ragged`."""
    pictures, labels = zip(*samples, strict=True)
    return ragged(pictures), torch.tensor(labels)


def facts(samples):
    """A batch, and what its worker is like."""
    batch = ragged(samples)
    return batch, get_num_threads(), torch.cuda.is_initialized()


def loader_of(folder, workers, context, collate=ragged, **options):
    return torch.utils.data.DataLoader(
        folder, BATCH, num_workers=workers, multiprocessing_context=context, collate_fn=collate, **options
    )


def check(batches, folder, order=None):
    """That the batches hold all images of a folder, once, in order."""
    order = list(range(len(folder))) if order is None else order
    assert [len(batch) for batch in batches] == [
        len(order[i : i + BATCH]) for i in range(0, len(order), BATCH)
    ]
    items = [item for batch in batches for item in batch]
    for index, item in zip(order, items, strict=True):
        expected = np.asarray(folder[index])
        assert isinstance(item, torch.Tensor) and item.shape == expected.shape
        assert np.array_equal(item.numpy(), expected)


@pytest.mark.parametrize(("workers", "context"), WORKERS)
def test_batches_are_the_images(workers, context):
    """Over two epochs of the same workers."""
    folder = Folder()
    loader = loader_of(folder, workers, context, persistent_workers=workers > 0)
    for _ in range(2):
        batches = list(loader)
        assert all(type(batch) is RaggedBatch and batch.offsets_on_host for batch in batches)
        check(batches, folder)


@pytest.mark.parametrize(("workers", "context"), WORKERS[:3])
def test_shuffled_images_with_labels(workers, context):
    folder = Labelled(60)
    loader = loader_of(folder, workers, context, labelled, shuffle=True)
    orders = []
    for _ in range(2):
        batches, labels = zip(*loader, strict=True)
        orders.append(torch.cat(labels).tolist())
        check(batches, Folder(60), orders[-1])
        assert sorted(orders[-1]) == list(range(60))
    assert orders[0] != orders[1]


@pytest.mark.parametrize(("workers", "context"), WORKERS)
def test_resized_as_the_list_is(workers, context):
    folder = Folder()
    batches = list(loader_of(folder, workers, context))
    for number, batch in enumerate(batches):
        pictures = [torch.from_numpy(folder[i].copy()) for i in range(COUNT)][BATCH * number :][:BATCH]
        assert torch.equal(images.resize(batch, 32, **CALL), images.resize(pictures, 32, **CALL))
        rows, grid = images.patch_rows(batch, images.smart_sizes, scale=255)
        expected, expected_grid = images.patch_rows(pictures, images.smart_sizes, scale=255)
        assert torch.equal(rows, expected) and grid.tolist() == expected_grid.tolist()


@pytest.mark.parametrize(("workers", "context"), WORKERS)
def test_workers_have_one_thread_and_leave_cuda_alone(workers, context):
    """Their batches come in shared memory, one block each."""
    for batch, threads, initialised in loader_of(Folder(), workers, context, facts):
        assert not workers or (threads == 1 and not initialised)
        assert batch.values.is_shared() == bool(workers)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("tensors", [False, True])
def test_dtypes_libraries_and_layouts(dtype, tensors):
    """Channels first are strided views here; they are packed as they are shaped."""
    folder = Folder(BATCH, tensors, dtype)
    batch = ragged([folder[i] for i in range(BATCH)])
    assert batch.dtype == dtype and batch.values.dtype == getattr(torch, dtype)
    check([batch], folder)


def test_channels_at_both_ends():
    """Which are channels may be said, and then there is no hint that asks for it."""
    narrow = [np.zeros((3, 200, 4), np.uint8), np.ones((3, 100, 4), np.uint8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = partial(ragged, source="CHW")(narrow)
    assert batch.shapes.tolist() == [[3, 200, 4], [3, 100, 4]]
    with pytest.raises(InputError, match="channels"):
        ragged([np.zeros((3, 200, 4), np.uint8), np.zeros((1, 200, 4), np.uint8)], source="CHW")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "the list is empty"),
        (np.zeros((2, 5, 5, 3), np.uint8), "list(images)"),
        ([np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 4), np.uint8)], "image 1"),
        ([np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 1), np.uint8)], "image 1"),
        ([np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 3), np.float32)], "image 1 of float32"),
        ([np.zeros((9, 8, 3), np.uint8), None], "image 1 is a NoneType, which is what cv2.imread gives"),
        ([np.zeros((9, 8), np.uint8), np.zeros((8, 9, 1), np.uint8)], "found (9, 8) beside (8, 9, 1)"),
        ([np.zeros((0, 8, 3), np.uint8)], "image 0"),
        ([np.zeros((9, 8, 3), np.int64)], "int64"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ragged(given)


def test_a_worker_names_what_it_refuses():
    pictures = [np.zeros((9, 8, 3), np.uint8), np.zeros((9, 8, 4), np.uint8)]
    with pytest.raises(InputError, match="image 1 of shape"):
        list(loader_of(pictures, 1, "fork"))


def test_moved_as_tensors_are():
    folder = Folder(3)
    batch = ragged([folder[i] for i in range(3)])
    moved = batch.to("cpu")
    assert moved.values is batch.values and moved.shapes is batch.shapes
    with pytest.raises(InputError, match="to takes a batch of tensors, found values that are an ndarray"):
        RaggedBatch.from_list([np.zeros(3)]).to("cpu")


@pytest.mark.gpu
@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork"), (2, "spawn")])
def test_pinned_and_uploaded_at_once(workers, context):
    """One copy to the GPU per batch, by the GPU itself, and the same result as where the images lie on the host."""
    folder = Folder()
    batches = list(loader_of(folder, workers, context, pin_memory=True))
    check(batches, folder)
    assert all(batch.values.is_pinned() and batch.pin_memory().values is batch.values for batch in batches)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        moved = [batch.to("cuda", non_blocking=True) for batch in batches]
        torch.cuda.synchronize()
    copies = [event.key for event in profile.events() if "HtoD" in event.key]
    assert len(copies) == len(batches) and all("Pinned" in name for name in copies)
    for here, there in zip(batches, moved, strict=True):
        assert there.device == "cuda" and there.offsets_on_host
        found = images.resize(there, 32, **CALL)
        assert found.is_cuda and torch.equal(
            found.cpu(), images.resize(here, 32, device="cuda", **CALL).cpu()
        )
        assert (found.cpu() - images.resize(here, 32, device="cpu", **CALL)).abs().max() < 1e-5
        assert torch.equal(there.to("cpu").values, here.values)


@pytest.mark.gpu
def test_offsets_of_the_gpu_come_home_with_the_values():
    batch = RaggedBatch.from_offsets(torch.arange(8.0).cuda(), torch.tensor([0, 3, 8]).cuda())
    home = batch.to("cpu")
    assert home.offsets_on_host and [item.tolist() for item in home] == [[0, 1, 2], [3, 4, 5, 6, 7]]
    assert not batch.to("cuda").offsets_on_host
    with pytest.raises(InputError, match="must lie on the host, found a GPU's"):
        ragged([torch.zeros(9, 8, 3, dtype=torch.uint8, device="cuda")])


def test_the_page_of_the_docs(root):
    """Its examples run one after the other."""
    text = (root / "docs/integrations/loaders.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) > 1
    exec("\n".join(examples), {})
