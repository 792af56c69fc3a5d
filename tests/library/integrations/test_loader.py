"""Images of different size through torch's `DataLoader`: the batches are the images, whoever made and sent them."""

import io
import re
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from octopus import RaggedBatch, get_num_threads, images  # noqa: E402
from octopus.errors import InputError  # noqa: E402
from octopus.integrations import loader  # noqa: E402
from octopus.integrations.loader import ragged, read  # noqa: E402

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
    options |= {"num_workers": workers, "multiprocessing_context": context, "collate_fn": collate}
    return torch.utils.data.DataLoader(folder, BATCH, **options)


def check(batches, folder, order=None):
    """That the batches hold all images of a folder, once, in order."""
    order = list(range(len(folder))) if order is None else order
    assert [len(batch) for batch in batches] == [len(order[i : i + BATCH]) for i in range(0, len(order), BATCH)]
    items = [item for batch in batches for item in batch]
    for index, item in zip(order, items, strict=True):
        expected = np.asarray(folder[index])
        assert isinstance(item, torch.Tensor) and item.shape == expected.shape
        assert np.array_equal(item.numpy(), expected)


@pytest.mark.parametrize(("workers", "context"), WORKERS)
def test_batches_are_the_images(workers, context):
    """Over two epochs of the same workers, in shared memory; resized as lists of them are. Workers have one thread and
    leave CUDA alone."""
    folder = Folder()
    loader = loader_of(folder, workers, context, facts, persistent_workers=workers > 0)
    for _ in range(2):
        batches, threads, initialised = zip(*loader, strict=True)
        assert all(type(batch) is RaggedBatch and batch.offsets_on_host for batch in batches)
        assert all(batch.values.is_shared() == bool(workers) for batch in batches)
        assert not workers or (set(threads) == {1} and not any(initialised))
        check(batches, folder)
    pictures = [torch.from_numpy(image.copy()) for image in map(folder.__getitem__, range(COUNT))]
    for number, batch in enumerate(batches):
        given = pictures[BATCH * number :][:BATCH]
        assert torch.equal(images.resize(batch, 32, **CALL), images.resize(given, 32, **CALL))
        rows, grid = images.patch_rows(batch, images.smart_sizes, scale=255)
        expected, expected_grid = images.patch_rows(given, images.smart_sizes, scale=255)
        assert torch.equal(rows, expected) and grid.tolist() == expected_grid.tolist()


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
        batch = ragged(narrow, source="CHW")
    assert batch.shapes.tolist() == [[3, 200, 4], [3, 100, 4]]
    with pytest.raises(InputError, match="channels"):
        ragged([np.zeros((3, 200, 4), np.uint8), np.zeros((1, 200, 4), np.uint8)], source="CHW")


@pytest.mark.parametrize(("given", "words"), [
    ([], "the list is empty"), (np.zeros((2, 2, 5, 5, 3), np.uint8), "must be a list of images"),
    ([np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 4), np.uint8)], "image 1"),
    ([np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 1), np.uint8)], "image 1"),
    ([np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 3), np.float32)], "image 1 of float32"),
    ([np.zeros((9, 8, 3), np.uint8), None], "image 1 is None, which is what cv2.imread gives"),
    ([np.zeros((9, 8), np.uint8), np.zeros((8, 9, 1), np.uint8)], "found (9, 8) beside (8, 9, 1)"),
    ([np.zeros((0, 8, 3), np.uint8)], "image 0"), ([np.zeros((9, 8, 3), np.int64)], "int64"),
])  # fmt: skip
def test_what_is_refused(given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ragged(given)


def test_a_worker_names_what_it_refuses():
    with pytest.raises(InputError, match="image 1 of shape"):
        list(loader_of([np.zeros((9, 8, channels), np.uint8) for channels in (3, 4)], 1, "fork"))


def test_moved_as_tensors_are():
    folder = Folder(3)
    batch = ragged([folder[i] for i in range(3)])
    moved = batch.to("cpu")
    assert moved.values is batch.values and moved.shapes is batch.shapes


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
        assert found.is_cuda and torch.equal(found.cpu(), images.resize(here, 32, device="cuda", **CALL).cpu())
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


def pillow():
    return pytest.importorskip("PIL.Image")


def test_images_of_pillow_and_arrays_make_the_same_batch():
    folder = [Folder()[index] for index in range(5)]
    of_pillow, expected = [pillow().fromarray(np.ascontiguousarray(one)) for one in folder], ragged(folder)
    for given in (of_pillow, [*of_pillow[:2], *folder[2:]]):
        batch = ragged(given)
        assert batch.shapes.tolist() == expected.shapes.tolist() and torch.equal(batch.values, expected.values)


def stored(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def files():
    """Contents of files of all forms that people have, by name."""
    base = pillow().fromarray(np.random.default_rng(5).integers(0, 256, (12, 16, 3), np.uint8)).resize((97, 61))
    clear = base.convert("RGBA")
    clear.putalpha(90)

    def turned(number):
        exif = pillow().Exif()
        exif[0x0112] = number
        return stored(base, "JPEG", exif=exif)

    return {
        "jpeg": stored(base, "JPEG"), "without subsampling": stored(base, "JPEG", subsampling=0),
        "progressive": stored(base, "JPEG", progressive=True), "grey": stored(base.convert("L"), "JPEG"),
        "CMYK": stored(base.convert("CMYK"), "JPEG"), "png": stored(base, "PNG"), "transparent": stored(clear, "PNG"),
        "palette": stored(base, "GIF"), "webp": stored(base, "WEBP"), "bmp": stored(base, "BMP"),
        **{f"EXIF {number}": turned(number) for number in range(1, 9)},
    }  # fmt: skip


def by_pillow(content):
    """Upright, on white, RGB."""
    operations = pytest.importorskip("PIL.ImageOps")
    image = operations.exif_transpose(pillow().open(io.BytesIO(content)))
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        white = pillow().new("RGBA", image.size, (255, 255, 255, 255))
        image = pillow().alpha_composite(white, image.convert("RGBA"))
    return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize(("decoder", "together"), [("auto", 64), ("auto", 3), ("pillow", 3), ("gone", 64)])
def test_files_are_read_as_pillow_does(decoder, together, monkeypatch):
    """Also where torchvision decodes nothing: it has deprecated its decoders."""
    monkeypatch.setattr(loader, "TOGETHER", together)
    if decoder == "gone":
        decoder = "auto"
        monkeypatch.setattr(loader, "_torchvision", lambda: None)
    contents = files()
    found = read(contents.values(), decoder=decoder)
    for name, pixels in zip(contents, found, strict=True):
        expected = by_pillow(contents[name])
        assert pixels.dtype == torch.uint8 and pixels.device.type == "cpu"
        assert np.array_equal(pixels.permute(1, 2, 0).numpy(), expected), name
    assert images.resize(found, 8).shape == (len(contents), 3, 8, 8)


def test_paths_and_contents_in_any_order(tmp_path):
    contents, given = files(), []
    for name, content in contents.items():
        path = tmp_path / f"{name}.image"
        path.write_bytes(content)
        given.append([path, str(path), content, bytearray(content), memoryview(content)][len(given) % 5])
    for pixels, content in zip(read(iter(given)), contents.values(), strict=True):
        assert np.array_equal(pixels.permute(1, 2, 0).numpy(), by_pillow(content))


WRONG = {
    "not there": (lambda path: path / "none.jpg", "No such file"),
    "no image": (lambda path: b"not an image", "(of no format that Pillow knows|pi_heif)"),  # by Ultralytics
    "truncated": (lambda path: stored(pillow().new("RGB", (900, 900), 7), "JPEG")[:3000], "truncated"),
    "16 bits": (
        lambda path: stored(pillow().fromarray(np.full((9, 9), 999, np.uint16)), "PNG"),
        "I;16 has more than 8 bits",
    ),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_a_file_that_cannot_be_decoded_is_named_or_left_out(make, message, tmp_path):
    good = stored(pillow().new("RGB", (20, 10), (1, 2, 3)), "PNG")
    given = [good, make(tmp_path), good]
    with pytest.raises(InputError, match=f"(?s)file 1.* can't be decoded: .*{message}.*skip"):
        read(given)
    for errors, count in (("skip", 2), ("none", 3)):
        with pytest.warns(UserWarning, match=f"(?s)file 1.* can't be decoded: .*{message}") as warned:
            found = read(given, errors=errors)
        assert len(warned) == 1 and len(found) == count
        assert [one is None for one in found] == ([False, True, False] if count == 3 else [False] * 2)


def test_a_bomb_is_refused_by_pillow(monkeypatch):
    monkeypatch.setattr(pillow(), "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(InputError, match=r"file 0 can't be decoded: .*decompression bomb[^.]*; errors="):
        read([files()["jpeg"]])


@pytest.mark.parametrize(("given", "options", "message"), [
    ([], {}, "the list is empty"), ("one.jpg", {}, r"found a str; pass \[file\]"),
    (b"content", {}, r"found a bytes; pass \[file\]"), (None, {}, "must be a list of files, found None"),
    ([b"", 7], {"errors": "skip"}, "file 1 is an int; pass a path or the file's bytes"),
    ([b""], {"errors": "ignore"}, "errors='ignore' is unknown; use one of raise, skip, none"),
    ([b""], {"decoder": "opencv"}, "decoder='opencv' is unknown; use one of auto, pillow"),
])  # fmt: skip
def test_calls_that_read_nothing(given, options, message):
    with pytest.raises(InputError, match=message):
        read(given, **options)


def test_transparent_pixels_are_as_transformers_has_them():
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torchvision")
    processor = transformers.CLIPImageProcessor()
    for name in ("transparent", "palette", "png"):
        content = files()[name]
        of_pillow = processor(pillow().open(io.BytesIO(content)), return_tensors="pt")["pixel_values"]
        assert torch.equal(processor(read([content]), return_tensors="pt")["pixel_values"], of_pillow), name


def test_reading_leaves_the_filters_of_warnings_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read([files()["jpeg"]])  # imports what adds filters of its own
        before = list(warnings.filters)
        assert len(read([files()["jpeg"]] * 3)) == 3
        assert warnings.filters == before


def test_progress_is_shown_where_it_is_wanted(capsys):
    pytest.importorskip("tqdm")
    read([files()["png"]] * 3)
    assert not capsys.readouterr().err
    read([files()["png"]] * 3, progress=True)
    assert "3/3" in capsys.readouterr().err


@pytest.mark.gpu
def test_files_are_decoded_on_a_gpu():
    """JPEG by nvJPEG, whose pixels differ where chroma was halved; all else, and all if asked for, by Pillow."""
    contents = files()
    exact = read(contents.values(), "cuda", decoder="pillow")
    found = read(contents.values(), "cuda")
    for name, pixels, same in zip(contents, found, exact, strict=True):
        expected = torch.from_numpy(by_pillow(contents[name]).copy()).permute(2, 0, 1)
        assert pixels.is_cuda and pixels.shape == expected.shape and pixels.dtype == torch.uint8
        assert torch.equal(same.cpu(), expected), name
        jpeg = contents[name][:2] == b"\xff\xd8" and name != "CMYK"
        off = (pixels.cpu().int() - expected.int()).abs().max()
        assert off <= (0 if not jpeg else 2 if name in ("without subsampling", "grey") else 64), (name, off)
    with pytest.raises(InputError, match=r"file 0 can't be decoded: .*truncated"):
        read([stored(pillow().new("RGB", (900, 900), 7), "JPEG")[:3000]], "cuda")
