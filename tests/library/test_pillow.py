"""Images of Pillow are read where they lie: all modes and forms of memory, and whatever is wrong with them."""

import gc
import io
import os
import re
import struct
import subprocess
import sys
import tarfile
import warnings

import numpy as np
import psutil
import pytest
from PIL import Image

import octopus
from octopus import InputError, images
from octopus.arrays import pillow
from octopus.arrays.pillow import rasters

GENERATOR = np.random.default_rng(6)
MODES = ["RGB", "RGBA", "RGBX", "L"]
BOXES = [[3, 4, 30, 25], [0, 0, 40, 30]]


def picture(mode="RGB", height=30, width=40):
    if mode == "I;16":
        return Image.fromarray(GENERATOR.integers(0, 2**16, (height, width), np.uint16))
    return Image.fromarray(GENERATOR.integers(0, 256, (height, width, 3), np.uint8)).convert(mode)


def stored(image, form="PNG", **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


FORMS = {
    "a row": lambda: picture(height=1), "a column": lambda: picture(width=1), "two rows": lambda: picture(height=2),
    "a part": lambda: picture().crop((3, 5, 20, 29)),
    "a file": lambda: Image.open(io.BytesIO(stored(picture()))),
    "a JPEG": lambda: Image.open(io.BytesIO(stored(picture(), "JPEG"))),
    "mapped": lambda: Image.frombuffer("L", (64, 48), bytes(range(256)) * 12, "raw", "L", 0, 1),
    "upside down": lambda: Image.frombuffer("L", (64, 48), bytes(range(256)) * 12, "raw", "L", 0, -1),
    "a photograph": lambda: picture(height=2100, width=2100),
    **{mode: lambda mode=mode: picture(mode) for mode in (*MODES, "I;16")},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_pixels_are_those_of_numpy(form):
    image = FORMS[form]()
    (found,) = rasters([image])
    expected = np.asarray(image)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.array_equal(found.array, expected) and not found.array.flags.writeable
    assert (found.runs is not None) == (form == "a photograph")
    if found.runs is None:
        (again,) = rasters([image])
        assert again.pointer == found.pointer == found.array.ctypes.data  # nothing was copied


@pytest.mark.parametrize("setting", [{"PILLOW_ALIGNMENT": "64"}, {"PILLOW_BLOCK_SIZE": "4096"}])
def test_however_pillow_reserves_memory(setting):
    """It reads these settings once, when it is imported."""
    code = (
        "import numpy as np; from PIL import Image; from octopus.arrays.pillow import rasters\n"
        "for size in ((7, 5), (300, 200), (40, 1)):\n"
        "    pixels = np.random.default_rng(2).integers(0, 256, (*size, 3), np.uint8)\n"
        "    (found,) = rasters([Image.fromarray(pixels)]); assert np.array_equal(found.array, pixels)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ, **setting})


def test_a_pillow_of_another_struct_is_read_by_numpy(monkeypatch):
    monkeypatch.setattr(pillow, "_LAYOUTS", (struct.Struct("=88x7i"), struct.Struct("=60x2i8x3q2i")))
    for mode in (*MODES, "I;16"):
        for height in (30, 130, 20_000):
            image = picture(mode, height, 16)
            assert np.array_equal(rasters([image])[0].array, np.asarray(image))
    assert octopus.crop_resize(picture("L"), BOXES, 8).shape == (2, 1, 8, 8)


@pytest.mark.parametrize("call", [
    lambda given: images.resize(given, 16), lambda given: images.resize_each(given, lambda sides: sides // 9).values,
    lambda given: images.patch_rows(given, images.smart_sizes)[0],
], ids=["resize", "resize_each", "patch_rows"])  # fmt: skip
def test_images_of_pillow_are_images(call):
    """Alone, in lists, and beside arrays."""
    given = [picture(height=60, width=50), picture(height=90, width=31), picture(height=2100, width=2100)]
    arrays = [np.asarray(image) for image in given]
    expected = call(arrays)
    for mixed in (given, [given[0], arrays[1], given[2]], [arrays[0], given[1], given[2]]):
        assert np.array_equal(call(mixed), expected)
    assert np.array_equal(call(given[0]), call(arrays[:1]))


@pytest.mark.parametrize("mode", [*MODES, "I;16"])
def test_modes_have_the_channels_of_their_arrays(mode):
    image = picture(mode)
    array = np.asarray(image)
    assert np.array_equal(images.resize(image, 16), images.resize([array], 16))
    expected = octopus.crop_resize(array if array.ndim == 3 else array[..., None], BOXES, 16)
    # The kernels of three and of four stored channels sum in another order.
    np.testing.assert_allclose(octopus.crop_resize(image, BOXES, 16), expected, rtol=1e-5, atol=1e-2)
    if mode == "RGBA":  # the fourth is left out where that is said, as of arrays
        three = images.resize(image, 16, channels="RGBA")
        assert np.array_equal(three, images.resize([array], 16, channels="RGBA")) and three.shape[1] == 3


def test_channels_of_pillow_come_last_whatever_their_sides():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is to be asked
        made = images.resize([picture(height=3, width=50), picture(height=4, width=3)], 8)
    assert made.shape == (2, 3, 8, 8)


@pytest.mark.parametrize("mode", ["P", "LA", "CMYK", "1", "F", "HSV", "YCbCr"])
def test_a_mode_whose_values_are_no_pixels_is_refused(mode):
    remedy = r'numpy.asarray\(image\).astype\("float32"\)' if mode == "F" else r'convert\("RGB"\)'
    for call in (lambda x: images.resize([picture(), x], 8), lambda x: octopus.crop_resize(x, BOXES, 8)):
        with pytest.raises(InputError, match=re.escape(f"has Pillow's mode {mode}") + f".*{remedy}"):
            call(picture(mode))
    with pytest.raises(InputError, match="image 1 has Pillow's mode"):
        images.resize([picture(), picture(mode)], 8)


def closed(image):
    image.close()
    return image


@pytest.mark.parametrize(("make", "message"), [
    (lambda: closed(picture()), "can't be read: Operation on closed image"),
    (lambda: closed(Image.open(io.BytesIO(stored(picture())))), "can't be (decoded|read): "),
    (lambda: Image.open(io.BytesIO(stored(picture(height=300, width=300), "JPEG")[:9000])),
     "can't be decoded: .*truncated"),
    (lambda: Image.new("RGB", (0, 5)), "is empty: 0x5"),
], ids=["closed", "a closed file", "truncated", "empty"])  # fmt: skip
def test_what_cannot_be_read_is_named(make, message):
    with pytest.raises(InputError, match=f"image 1 {message}"):
        images.resize([picture(), make()], 8)


def test_an_image_may_change_between_calls():
    image = picture(height=80, width=60)
    before = images.resize(image, 16)
    array = np.asarray(image)
    image.thumbnail((30, 30))
    assert not np.array_equal(images.resize(image, 16), before)
    assert np.array_equal(images.resize(image, 16), images.resize([np.asarray(image)], 16))
    image.paste((1, 2, 3), (0, 0, 30, 40))
    assert np.array_equal(images.resize(image, 16, dtype="uint8")[0, :, 0, 0], [1, 2, 3])
    assert np.array_equal(images.resize([array], 16), before)


def test_memory_outlives_the_image():
    image = picture()
    expected = np.asarray(image)
    (found,) = rasters([image])
    array = found.array
    image.close()
    del image, found
    gc.collect()
    assert np.array_equal(array, expected)


def test_files_are_decoded_by_several_threads_those_of_one_file_in_turn():
    files = [io.BytesIO(stored(picture(height=200, width=150))) for _ in range(9)]
    arrays = [np.asarray(Image.open(file)) for file in files]
    order = [*range(9), *[0] * 9]
    given = [Image.open(files[i]) for i in order]
    expected = images.resize([arrays[i] for i in [*order, 0, 1]], 16)
    assert np.array_equal(images.resize([*given, *given[:2]], 16), expected)  # the last two are objects that were there


@pytest.mark.parametrize("form", ["PNG", "BMP"])
def test_members_of_an_archive_are_decoded_in_turn(form, tmp_path):
    """Each has a file object of its own on the same file."""
    expected = [picture(height=200, width=300) for _ in range(6)]
    with tarfile.open(tmp_path / "images.tar", "w") as archive:
        for number, image in enumerate(expected):
            image.save(tmp_path / str(number), form)
            archive.add(tmp_path / str(number))
    for _ in range(5):
        with tarfile.open(tmp_path / "images.tar") as archive:
            opened = [Image.open(archive.extractfile(member)) for member in archive]
            for raster, image in zip(rasters(opened), expected, strict=True):
                assert np.array_equal(raster.array, np.asarray(image))


def test_a_pattern_of_sizes_is_kept_apart_from_that_of_arrays():
    """Of three rows, which could be channels of an array."""
    stored_in_four = GENERATOR.integers(0, 256, (3, 40, 4), np.uint8)
    planes = GENERATOR.integers(0, 256, (3, 50, 60), np.uint8)
    image = Image.fromarray(stored_in_four[..., :3].copy())
    images.resize([stored_in_four[..., :3], planes], 8)
    again = images.resize([image, planes], 8)
    alone = images.resize([image], 8)
    assert np.array_equal(again[0], alone[0])


def test_an_image_of_several_blocks_is_no_result():
    image, small = Image.new("L", (1176, 16_000)), picture(height=28, width=28)
    assert rasters([image])[0].runs is not None
    with pytest.raises(InputError, match="read-only"):
        images.patch_rows([small] * 4000, [[28, 28]] * 4000, dtype="uint8", out=image)


def test_no_memory_is_left_behind():
    """Over thousands of calls, wrong ones among them: 1400 bytes of each would be seen."""
    given, broken, process = [picture(), picture("L").convert("RGB")], [picture("P")], psutil.Process()

    def calls(count):
        for _ in range(count):
            images.resize(given, 4)
            rasters(given)
            with pytest.raises(InputError):
                rasters(broken)
        gc.collect()

    calls(500)
    before = process.memory_info().rss
    calls(3000)
    assert process.memory_info().rss - before < 4 << 20
