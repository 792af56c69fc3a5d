"""Images on the host, packed for an upload or a loader's batch: by however many threads, however each of them lies."""

import contextlib

import numpy as np
import pytest
from images_case import in_blocks, pixels
from PIL import Image

from octopus import RaggedBatch
from octopus.images import upload
from octopus.images.sources import geometry_of, look


def grey(image):
    """One channel that is read three times."""
    return np.lib.stride_tricks.as_strided(image[..., 0].copy(), image.shape, (image.shape[1], 1, 0))


FORMS = {
    "arrays": lambda given: given,
    "turned": lambda given: [image.transpose(2, 0, 1) for image in given],
    "steps": lambda given: [given[0][::-1, :, ::-1], *given[1:]],
    "ragged": RaggedBatch.from_list,
    "pillow": lambda given: [Image.fromarray(image) for image in given],
    "blocks": lambda given: [given[0], *(in_blocks(np.tile(image, (30, 40, 1))) for image in given[1:])],
    "grey": lambda given: [grey(image) for image in given],
    "mixed": lambda given: [given[0][::-1], Image.fromarray(given[1]), given[2].transpose(2, 0, 1)],
}


def packing(given, **options):
    found = look(given)
    return found, upload.Packing(found, geometry_of(found), **options)


@pytest.mark.parametrize(("piece", "thread"), [(8, 7), (1 << 19, 7), (8, 1 << 22)])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_images_are_packed_one_after_the_other(form, threads, piece, thread, set_threads, monkeypatch):
    set_threads(threads)
    monkeypatch.setattr(upload, "PIECE_BYTES", piece)
    monkeypatch.setattr(upload, "THREAD_BYTES", thread)
    given = FORMS[form](pixels())
    found, packed = packing(given, as_they_lie=True, begin=5)
    memory = np.full(packed.nbytes, 7, np.uint8)
    whole, told = [], []

    def check(end):
        whole.append(memory[:end].copy())
        told.append(end)

    packed.copy(found, memory, check)
    few = thread > 7 or piece > 8
    assert told == sorted(set(told)) and (len(told) > 1 or form == "steps" or threads > 1 or few)
    assert all(np.array_equal(part, memory[: part.size]) for part in whole)
    arrays = [np.asarray(image) for image in given]
    for image, begin, strides in zip(arrays, packed.begins.tolist(), packed.geometry.strides.tolist(), strict=True):
        assert np.array_equal(np.ndarray(image.shape, np.uint8, memory, begin, strides), image)
    assert (memory[:5] == 7).all()
    assert packed.nbytes <= 5 + sum(image.size + upload.ALIGNMENT for image in arrays)
    found, packed = packing(given, as_they_lie=False)
    memory = np.full(packed.nbytes, 7, np.uint8)
    packed.copy(found, memory)
    assert np.array_equal(memory, np.concatenate([image.ravel() for image in arrays]))


def test_pixels_of_four_bytes_become_three_whatever_their_number():
    """By vectors, and the last ones one by one: nothing behind them is written."""
    for width in range(1, 40):
        image = Image.fromarray(np.random.default_rng(width).integers(0, 256, (1, width, 3), np.uint8))
        found, packed = packing([image], as_they_lie=False)
        memory = np.full(packed.nbytes + 40, 7, np.uint8)
        packed.copy(found, memory)
        assert np.array_equal(memory[: 3 * width], np.asarray(image).ravel()) and (memory[3 * width :] == 7).all()


def test_an_error_of_who_is_told_is_raised_and_the_threads_go_on(set_threads, monkeypatch):
    monkeypatch.setattr(upload, "PIECE_BYTES", 7)
    monkeypatch.setattr(upload, "THREAD_BYTES", 7)
    found, packed = packing(pixels(), as_they_lie=True)
    memory = np.zeros(packed.nbytes, np.uint8)

    def fail(end):
        raise RuntimeError(f"no upload of {end}")

    set_threads(2)
    for _ in range(3):
        with contextlib.suppress(RuntimeError):  # the other thread may do all of it
            packed.copy(found, memory, fail)
    set_threads(1)
    with pytest.raises(RuntimeError, match="no upload of"):
        packed.copy(found, memory, fail)
    set_threads(2)
    memory[:] = 0
    packed.copy(found, memory)
    for image, begin in zip(pixels(), packed.begins, strict=True):
        assert np.array_equal(memory[begin : begin + image.size], image.ravel())
