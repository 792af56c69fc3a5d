"""Stand-ins for transformers' image processors give the processors' own answers, or say that they leave them the work.

The processors are made of their classes, so that nothing is fetched. How near values are is said in
`docs/integrations/transformers.md`, and held here: Pillow's backend, and torchvision's on a CPU, to the bit before they
are normalised; torchvision's as on a GPU, which rounds once, up to one level off in 0.5 %.
"""

import copy
import io
import pickle
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="torchvision is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from test_loader import files  # noqa: E402

from octopus import images  # noqa: E402
from octopus.errors import DeviceError, InputError, OutOfMemoryError  # noqa: E402
from octopus.integrations import common  # noqa: E402
from octopus.integrations import transformers as stand_ins  # noqa: E402
from octopus.integrations.transformers import FallbackWarning, accelerate  # noqa: E402

CODE = "transformers.models"
SIDES = [(97, 143), (300, 201), (56, 84), (33, 320), (350, 180), (400, 230), (300, 201)]
SHARE = {"fixed": 0.0, "float": 0.005, "pil": 0.0}  # of values that may be off
LEVELS = {"fixed": 0, "float": 1, "pil": 0}
QWEN3 = {"patch_size": 16, "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "image_mean": [0.5] * 3,
         "image_std": [0.5] * 3}  # fmt: skip
DINO = {"size": {"shortest_edge": 256}, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
PROCESSORS = {
    "Qwen2-VL": ("Qwen2VLImageProcessor", {}), "Qwen3-VL": ("Qwen2VLImageProcessor", QWEN3),
    "Qwen2.5-VL": ("Qwen2VLImageProcessor", {"min_pixels": 3136, "max_pixels": 50_176}),
    "SigLIP": ("SiglipImageProcessor", {}), "SigLIP2": ("Siglip2ImageProcessor", {}),
    "CLIP": ("CLIPImageProcessor", {}), "DINOv2": ("BitImageProcessor", DINO),
    "ViT": ("ViTImageProcessor", {}), "DeiT": ("DeiTImageProcessor", {}),
    "limits": ("CLIPImageProcessor", {"size": {"max_height": 90, "max_width": 120}, "do_center_crop": False}),
    "longest": ("ViTImageProcessor", {"size": {"shortest_edge": 64, "longest_edge": 120}}),
}  # fmt: skip
OPTIONS = {
    "as made": {}, "no resize": {"do_resize": False}, "no crop": {"do_center_crop": False},
    "no rescale": {"do_rescale": False}, "no normalise": {"do_normalize": False},
    "bytes": {"do_rescale": False, "do_normalize": False},
    "other factor": {"rescale_factor": 1 / 127.5, "image_mean": 1.0, "image_std": 0.5},
    "nearest": {"resample": 0}, "bilinear": {"resample": 2}, "by name": {"resample": "bicubic"},
    "lanczos": {"resample": 1},
}  # fmt: skip


def pictures(sides=SIDES, channels=3):
    """Blocks of noise, whose edges overshoot, as arrays (H, W, C) of uint8."""
    generator = np.random.default_rng(3)
    blocks = [generator.integers(0, 256, (h // 3 + 2, w // 3 + 2, channels), np.uint8) for h, w in sides]
    return [
        np.ascontiguousarray(one.repeat(3, 0).repeat(3, 1)[:h, :w]) for one, (h, w) in zip(blocks, sides, strict=True)
    ]


def whole(side):
    """What is resized no more: multiples of the patches of Qwen2-VL and SigLIP2."""
    return pictures([(112, 224), (224, 112), (224, 224)] if side is None else [(side, side)] * 3)


def make(name, **options):
    return getattr(transformers, name)(**options)


functional = pytest.importorskip("torchvision.transforms.v2.functional")
REAL = functional.resize


def in_float(image, size, **options):
    """`resize` as torchvision does it on a GPU."""
    return REAL(image.float(), size, **options).round().clamp(0, 255).byte()


RECIPE = re.compile(r"^\| ([\w.-]+)[^|]* \| `((?:resize|patch_rows)\(images.*)` \|$", re.MULTILINE)
PAGE = Path(__file__).parents[3] / "docs" / "images.md"
RECIPES = dict(RECIPE.findall(PAGE.read_text()) if PAGE.is_file() else [])


@pytest.mark.parametrize("name", RECIPES)
def test_the_documented_calls_in_place_of_a_processor_are_right(name):
    processor = make(PROCESSORS[name][0], **PROCESSORS[name][1])
    given = [np.random.default_rng(4).integers(0, 256, (*side, 3), np.uint8) for side in SIDES]
    own = {"images": given, "partial": partial, "mean": processor.image_mean, "std": processor.image_std}
    found = eval(RECIPES[name].replace("mean=..., std=...", "mean=mean, std=std"), {**vars(images), **own})
    expected = processor(given, return_tensors="np")["pixel_values"]
    assert np.abs((found[0] if isinstance(found, tuple) else found) - expected).max() < 1e-4


@pytest.fixture(params=SHARE)
def backend(request, monkeypatch):
    """Each way of rounding, with torchvision made to round as on a GPU for one of them."""
    if request.param == "float":
        monkeypatch.setattr(functional, "resize", in_float)
        monkeypatch.setattr(stand_ins, "_fixed_point", lambda filter: False)
    return request.param


def answers(processor, given, **options):
    """The original's answer and the stand-in's, which must not ask the original."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        return processor(given, **options), accelerate(processor)(given, **options)


def arrays(value):
    """A list of arrays, and what it was."""
    return (list(value), "list") if isinstance(value, list) else ([value], type(value))


def check(expected, found, level=0.0, levels=0, share=0.0):
    """Same keys, types, shapes and dtypes; values up to some levels apart, and that in a share of them alone."""
    assert list(found) == list(expected)
    for key in expected:
        (ours, kind), (theirs, their_kind) = arrays(found[key]), arrays(expected[key])
        assert kind == their_kind and list(map(type, ours)) == list(map(type, theirs))
        if isinstance(theirs[0], tuple):
            assert ours == theirs
            continue
        assert [(one.shape, one.dtype) for one in ours] == [(one.shape, one.dtype) for one in theirs]
        assert [getattr(one, "device", None) for one in ours] == [getattr(one, "device", None) for one in theirs]
        pairs = zip(map(on_host, ours), map(on_host, theirs), strict=True)
        off = np.concatenate([np.abs(one.astype(np.float64) - other).ravel() for one, other in pairs])
        if key == "pixel_values":
            largest = max(float(np.abs(on_host(one)).max()) for one in theirs)
            assert off.max() <= levels * level * 1.001 + 1e-6 * max(10, largest)
            assert (off > level / 2).mean() <= share
        else:
            assert not off.any()


def on_host(values):
    return values.cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def level_of(processor, options):
    """What one of 256 levels is after normalisation, at most."""
    asked = {name: options.get(name, getattr(processor, name)) for name in ("do_rescale", "do_normalize")}
    factor = options.get("rescale_factor", processor.rescale_factor) if asked["do_rescale"] else 1
    return factor / (np.min(options.get("image_std", processor.image_std)) if asked["do_normalize"] else 1)


def compare(processor, given, backend="fixed", **options):
    expected, found = answers(processor, given, **options)
    check(expected, found, level_of(processor, options), LEVELS[backend], SHARE[backend])
    return found


def named(name, backend):
    return f"{name}Pil" if backend == "pil" else name


@pytest.mark.parametrize("form", ["pt", "np", None])
@pytest.mark.parametrize("kind", PROCESSORS)
def test_answers(backend, kind, form):
    name, options = PROCESSORS[kind]
    processor = make(named(name, backend), **options)
    ragged = kind in ("limits", "longest")
    compare(processor, pictures(), backend, return_tensors=None if ragged else form)


@pytest.mark.parametrize("asked", OPTIONS)
@pytest.mark.parametrize("kind", ["Qwen2-VL", "SigLIP", "SigLIP2", "CLIP"])
def test_options_of_a_call(backend, kind, asked):
    if backend == "float" and asked == "lanczos":
        pytest.skip("transformers has no Lanczos on a GPU")
    options = dict(OPTIONS[asked])
    if options.get("resample") == "bicubic":
        options["resample"] = functional.InterpolationMode.BICUBIC
    name = PROCESSORS[kind][0]
    if backend != "pil" and asked == "nearest":
        pytest.skip("torchvision's nearest pixels are others: see the fallbacks")
    still = asked == "no resize"
    given = whole(None if kind == "Qwen2-VL" else 224) if still else pictures()
    compare(make(named(name, backend)), given, backend, **options)


PADDED = {"size": {"shortest_edge": 40}, "do_center_crop": False, "do_pad": True}
UNSIZED = {"size": None, "do_resize": False}
PT = {"return_tensors": "pt"}
PATCHES = {"patch_size": 16, "merge_size": 1, "temporal_patch_size": 3}
CROP = {"crop_size": {"height": 70, "width": 60}}
SIZES = ({"height": 100, "width": 80}, {"shortest_edge": 60}, (90, 110), 64)
# By name: the processor, how it is made, options of the call, and images if they aren't the usual ones.
ASKED = {
    **{f"{name} {size}": (f"{name}ImageProcessor", {}, {"size": size} | more)
       for size in SIZES for name, more in (("CLIP", CROP), ("Siglip", {}))},
    "padded": ("CLIPImageProcessor", PADDED, PT),
    "padded to a size": ("CLIPImageProcessor", PADDED, PT | {"pad_size": {"height": 400, "width": 500}}),
    "too small for its crop": ("CLIPImageProcessor", {"size": {"shortest_edge": 150}}, {}),
    "limits": ("Qwen2VLImageProcessor", {}, PT | {"size": {"shortest_edge": 10_000, "longest_edge": 20_000}}),
    "patches": ("Qwen2VLImageProcessor", {}, PT | PATCHES),
    "patches of SigLIP2": ("Siglip2ImageProcessor", {}, PT | {"patch_size": 14, "max_num_patches": 100}),
    "no size": ("Qwen2VLImageProcessor", UNSIZED, PT | {"size": None}, whole(112)),
    "no size of SigLIP2": ("Siglip2ImageProcessor", UNSIZED, PT | {"size": None}, whole(112)),
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
def test_sizes_and_patches(backend, asked):
    name, made, options, *given = ASKED[asked]
    (given,) = given or [pictures()]
    if asked == "too small for its crop" and backend == "pil":
        # Pillow's backend pads the other side first where an odd number is missing: see the fallbacks.
        given = pictures([(300, 300), (100, 160), (75, 120)])
    found = compare(make(named(name, backend), **made), given, backend, **options)
    if made is PADDED:
        assert found["pixel_values"].shape[2:] == ((400, 500) if "pad_size" in options else (77, 387))


INPUTS = {
    "NumPy (H, W, C)": lambda one: one,
    "NumPy (C, H, W)": lambda one: one.transpose(2, 0, 1),
    "torch (C, H, W)": lambda one: torch.from_numpy(one).permute(2, 0, 1),
    "torch (H, W, C)": torch.from_numpy,
    "Pillow RGB": Image.fromarray,
    "part of a larger one": lambda one: torch.from_numpy(one.repeat(2, 0)[::2]).permute(2, 0, 1),
}


@pytest.mark.parametrize("form", [*INPUTS, "mixed"])
@pytest.mark.parametrize("kind", ["Qwen2-VL", "CLIP"])
def test_inputs(kind, form, backend):
    """As the original: each kind of image, and all kinds in one call."""
    name, _ = PROCESSORS[kind]
    forms = list(INPUTS.values()) if form == "mixed" else [INPUTS[form]]
    given = [forms[number % len(forms)](one) for number, one in enumerate(pictures())]
    compare(make(named(name, backend)), given, backend, return_tensors="pt")


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "LA", "CMYK", "1"])
def test_modes_of_pillow(mode, backend):
    given = [Image.fromarray(one).convert(mode) for one in pictures()[:3]] + [Image.fromarray(pictures()[3])]
    compare(make(named("CLIPImageProcessor", backend)), given, backend)


def test_grey_images(backend):
    grey = [Image.fromarray(one).convert("L") for one in pictures()]
    one = {"image_mean": 0.5, "image_std": 0.25} if backend == "pil" else {"do_normalize": False}
    made = compare(make(named("ViTImageProcessor", backend)), grey, backend, return_tensors="pt", **one)
    assert made["pixel_values"].shape == (len(grey), 1, 224, 224)
    made = compare(make(named("CLIPImageProcessor", backend)), [*grey, *pictures()], backend, return_tensors="pt")
    assert made["pixel_values"].shape == (2 * len(grey), 3, 224, 224)


@pytest.mark.parametrize("given", [
    pytest.param(pictures()[0], id="one"), pytest.param([pictures()[:2], pictures()[2:3]], id="nested"),
    pytest.param(np.stack([pictures()[1], pictures()[6]]), id="a batch"),
    pytest.param(torch.from_numpy(pictures()[0]).permute(2, 0, 1), id="a tensor"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["Qwen2-VL", "SigLIP", "SigLIP2"])
def test_one_image_and_many(kind, given, backend):
    compare(make(named(PROCESSORS[kind][0], backend)), given, backend, return_tensors="pt")


@pytest.mark.parametrize(("function", "ours", "arguments", "most"), [
    (f"{CODE}.qwen2_vl.image_processing_qwen2_vl.smart_resize", images.smart_sizes, arguments, 9000)
    for arguments in ((28, 3136, 1_003_520), (32, 65_536, 16_777_216), (28, 100_000, 120_000), (1, 1, 99))
] + [
    (f"{CODE}.siglip2.image_processing_siglip2.get_image_size_for_max_num_patches", images.fit_sizes, arguments, 6000)
    for arguments in ((16, 256), (16, 1024), (14, 729), (32, 1))
])  # fmt: skip
def test_sizes_are_those_of_transformers(function, ours, arguments, most):
    theirs, factor = resolve_name(function), arguments[0]
    sides = np.random.default_rng(5).integers(1, most, (30_000 if len(arguments) == 3 else 2000, 2)).tolist()
    sides += [(factor * k // 2, factor * n // 2) for k in range(1, 60) for n in range(1, 60) if factor > 1]
    sides = [pair for pair in sides if max(pair) / min(pair) <= 200]
    assert np.array_equal(ours(sides, *arguments), [theirs(*pair, *arguments) for pair in sides])


def in_modes():
    """Images of Pillow in all modes and orientations, lazily read files among them, each by its name."""
    rgb = Image.fromarray(pictures([(91, 137)])[0])

    def transparent(mode, colour):
        made = rgb.convert(mode)
        made.info["transparency"] = colour
        return made

    modes = ("RGB", "L", "LA", "P", "RGBA", "PA", "CMYK", "1", "F", "HSV", "YCbCr")
    return {
        **{mode: lambda mode=mode: rgb.convert(mode) for mode in modes},
        "I;16": lambda: Image.fromarray(np.asarray(rgb)[..., 0].astype(np.uint16) * 257),
        "RGB, one colour transparent": lambda: transparent("RGB", (10, 20, 30)),
        "P, one colour transparent": lambda: transparent("P", 3),
        **{f"{name}, a file": lambda file=file: Image.open(io.BytesIO(file)) for name, file in files().items()},
    }


@pytest.mark.parametrize("convert", [None, True, False])
@pytest.mark.parametrize("kind", ["Qwen2-VL", "SigLIP", "CLIP", "DINOv2", "SigLIP2"])
def test_all_modes_and_orientations_of_pillow(kind, convert):
    """The original's answer, or its error."""
    options = {} if convert is None else {"do_convert_rgb": convert}
    processor = make(PROCESSORS[kind][0], **PROCESSORS[kind][1])
    made = accelerate(processor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mode, image in in_modes().items():
            results = []
            for one in (processor, made):
                try:
                    results.append(one(image(), return_tensors="pt", **options))
                except Exception as error:
                    results.append(error)
            if isinstance(results[0], Exception):
                assert type(results[1]) is type(results[0]), mode
            else:
                check(*results, level_of(processor, options))


def test_what_a_call_was_asked_for_is_looked_up_as_long_as_it_is_the_same(monkeypatch):
    """Also of a processor whose attributes are changed, or their values are."""
    processor = make("SiglipImageProcessor")
    made, resolved = accelerate(processor), []
    real = type(processor)._standardize_kwargs
    monkeypatch.setattr(
        transformers.image_processing_utils.BaseImageProcessor, "_standardize_kwargs",
        lambda self, **options: resolved.append(options) or real(self, **options),
    )  # fmt: skip

    def answer(**options):
        resolved.clear()
        found = made(pictures(), return_tensors="pt", **options)
        return found["pixel_values"].shape[-2:], len(resolved)

    assert answer() == ((224, 224), 1) and answer() == ((224, 224), 0)
    assert answer(size={"height": 32, "width": 48}) == ((32, 48), 1)
    assert answer(size={"height": 32, "width": 48}) == ((32, 48), 0)
    assert answer(size={"height": 48, "width": 32}) == ((48, 32), 1)
    made.size["height"] = 100
    assert answer() == ((100, 224), 1) and answer() == ((100, 224), 0)
    made.size = made.size.__class__(height=60, width=70)
    assert answer() == ((60, 70), 1)
    assert processor.size["height"] == 224


def test_what_replaces_a_method_of_one_object_is_called():
    processor = make("ViTImageProcessor")
    processor.resize = lambda image, *args, **kwargs: image.new_zeros(*image.shape[:-2], 224, 224)
    with pytest.warns(FallbackWarning, match="methods of its own"):
        found = accelerate(processor)(pictures(), return_tensors="pt")["pixel_values"]
    assert torch.equal(found, processor(pictures(), return_tensors="pt")["pixel_values"])


def test_a_file_that_cannot_be_decoded_has_no_answer():
    """A second attempt of Pillow's would give what the first one has decoded."""
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 160, 3), np.uint8)).save(file, "PNG")
    content = bytearray(file.getvalue())
    half = len(content) // 2
    content[half : half + 40] = bytes(40)
    for name in ("CLIPImageProcessor", "Qwen2VLImageProcessor"):
        for processor in (make(name), accelerate(make(name))):
            with pytest.raises(OSError, match="broken data stream"):
                processor(Image.open(io.BytesIO(content)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, "float16", np.float16])
@pytest.mark.parametrize("kind", ["Qwen2-VL", "SigLIP", "SigLIP2", "CLIP"])
def test_the_models_dtype(kind, dtype):
    """That of the original's answer, rounded once; nothing else changes."""
    processor = make(PROCESSORS[kind][0])
    expected, found = (one(pictures(), **PT) for one in (processor, accelerate(processor, dtype=dtype)))
    wanted = torch.bfloat16 if dtype is torch.bfloat16 else torch.float16
    assert found["pixel_values"].dtype == wanted
    torch.testing.assert_close(found["pixel_values"], expected["pixel_values"].to(wanted), rtol=1e-2, atol=1e-2)
    for key in set(expected) - {"pixel_values"}:
        assert torch.equal(found[key], expected[key])


def test_the_models_dtype_of_what_the_original_answers_and_of_copies():
    made = accelerate(make("CLIPImageProcessor"), dtype="float16")
    with pytest.warns(FallbackWarning):
        found = made([one / 255 for one in pictures()], do_rescale=False, return_tensors="pt")
    assert found["pixel_values"].dtype == torch.float16
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), accelerate(made)):
        assert other(pictures(), return_tensors="pt")["pixel_values"].dtype == torch.float16
    assert accelerate(made, dtype="float32")(pictures(), return_tensors="pt")["pixel_values"].dtype == torch.float32
    pil = accelerate(make("CLIPImageProcessorPil"), dtype="float16")
    assert pil(pictures(), return_tensors="np")["pixel_values"].dtype == np.float16
    for name, dtype in (("CLIPImageProcessorPil", "bfloat16"), ("CLIPImageProcessor", "float64")):
        with pytest.raises(InputError, match=f"dtype={dtype} (is none of|needs a processor on torchvision)"):
            accelerate(make(name), dtype=dtype)


def test_floats_are_not_rounded():
    given = [torch.from_numpy(one).permute(2, 0, 1).float() / 255 for one in pictures()]
    for kind in ("Qwen2-VL", "CLIP", "SigLIP2"):
        processor = make(PROCESSORS[kind][0], do_rescale=False)
        expected, found = answers(processor, given, return_tensors="pt")
        torch.testing.assert_close(found["pixel_values"], expected["pixel_values"], rtol=1e-4, atol=1e-4)


def test_a_format_and_a_device_that_are_said():
    given = [one[:3] for one in pictures()]  # three rows, or three channels
    for said in ({"input_data_format": "channels_last"}, {"input_data_format": "channels_first"}, {"device": "cpu"}):
        compare(make("SiglipImageProcessor"), given, **said, **PT)


class Doubled(transformers.ViTImageProcessor):
    """One with code of its own."""

    def normalize(self, image, mean, std, **others):
        return super().normalize(image, mean, std, **others) * 2


FLOATS = [one / 255 for one in pictures()]
IN_FOUR = [Image.fromarray(one) for one in pictures(channels=4)]
# A processor, options, images if they aren't the usual ones, and the reason.
FALLBACKS = {
    "dtype": ("CLIP", {"do_rescale": False}, FLOATS, "images are float64"),
    "two": ("CLIP", {}, [*pictures(), FLOATS[0].astype(np.float32)], "float32, uint8"),
    "filter": ("Siglip Pil", {"resample": 4}, None, "resample=.*none of"),
    "a name": ("Siglip Pil", {"resample": "bicubic"}, None, "knows no names"),
    "nearest by name": ("Siglip", {"resample": functional.InterpolationMode.NEAREST}, None, "resample=.*none of"),
    "nearest": ("Siglip", {"resample": 0}, None, "nearest pixels"),
    "odd": ("CLIP Pil", {"size": {"shortest_edge": 201}}, None, "odd number"),
    "crop": ("CLIP", {"crop_size": 300, "size": (250, 260)}, None, "larger"),
    "crop of a rule": ("CLIP", {"size": {"shortest_edge": 224, "longest_edge": 300}}, None, "the middle of images"),
    "weighed": ("Siglip Pil", {"do_normalize": False, "do_convert_rgb": False}, IN_FOUR, "four channels"),
    "too many rows": ("Siglip2", {"do_resize": False, "max_num_patches": 40}, whole(224), "max_rows=40"),
}


@pytest.mark.parametrize(("name", "options", "given", "reason"), FALLBACKS.values(), ids=FALLBACKS)
def test_what_is_not_known_is_left_to_the_original_and_said(name, options, given, reason):
    name, _, backend = name.partition(" ")
    processor, given = make(f"{name}ImageProcessor{backend}"), given or pictures()
    with pytest.warns(FallbackWarning, match=reason) as warned:
        found = accelerate(processor)(given, **options)
    assert len(warned) == 1
    check(processor(given, **options), found)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        accelerate(processor)(given, **options)  # said once
        common._warned.clear()
        for _ in range(2):  # who makes it an error is told each time
            with pytest.raises(FallbackWarning, match=reason):
                accelerate(processor)(given, **options)


@pytest.mark.parametrize("error", [DeviceError, OutOfMemoryError])
def test_without_a_gpu_or_its_memory_the_original_works(monkeypatch, error):
    def refuse(*given, **options):
        raise error("there are 7 bytes too few")

    monkeypatch.setattr(stand_ins, "run", refuse)
    processor = make("SiglipImageProcessor")
    with pytest.warns(FallbackWarning, match="there are 7 bytes too few"):
        found = accelerate(processor)(pictures())
    check(processor(pictures()), found)


def test_a_class_that_is_not_known_stays_as_it_is():
    for processor in (Doubled(), transformers.DetrImageProcessor()):
        with pytest.warns(FallbackWarning, match=f"{type(processor).__name__} works without octopus"):
            assert accelerate(processor) is processor


class Named(transformers.ViTImageProcessor):
    """One that is known, whatever its name."""


def test_a_subclass_without_code_of_its_own_is_known():
    compare(Named(), pictures())


@pytest.mark.parametrize(("name", "given", "options"), [
    ("Qwen2VL", [np.zeros((3, 900, 3), np.uint8)], {}), ("Qwen2VL", [], {}), ("CLIP", ["no such file.png"], {}),
    ("Qwen2VL", pictures(), {"do_resize": False}), ("CLIP", pictures(), {"do_center_crop": False, **PT}),
    ("CLIP", [torch.zeros(4, 50, 60).byte()], {"do_convert_rgb": False}),
    ("CLIP", pictures(), {"image_mean": [0.5, 0.5]}), ("CLIP", pictures(), {"size": {"sides": 3}}),
], ids=["ratio", "no images", "no file", "no multiples", "ragged", "four", "two means", "no size"])  # fmt: skip
def test_errors_are_the_originals(name, given, options):
    processor = make(f"{name}ImageProcessor")
    with pytest.raises(Exception) as expected:
        processor(given, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        with pytest.raises(expected.type, match=re.escape(str(expected.value)[:40])):
            accelerate(processor)(given, **options)


def test_a_newer_version_works_where_its_code_is_known(monkeypatch):
    stand_ins._class_of.cache_clear()
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "6.1.0")
    monkeypatch.setattr(common, "_newer", {"transformers"})
    assert type(accelerate(make("ViTImageProcessor")))._forwards
    compare(make("ViTImageProcessor"), pictures())
    stand_ins._class_of.cache_clear()


@pytest.mark.parametrize("wrong", [None, "clip", pictures()[0], transformers.ViTImageProcessor])
def test_what_is_no_processor(wrong):
    with pytest.raises(InputError, match="accelerate takes an image processor of transformers"):
        accelerate(wrong)


def test_it_is_what_it_stands_for(tmp_path):
    processor = make("CLIPImageProcessor", size={"shortest_edge": 100})
    made = accelerate(processor)
    assert isinstance(made, type(processor)) and type(made) is not type(processor)
    assert made.to_dict() == processor.to_dict() and accelerate(made) is made
    made.save_pretrained(tmp_path)
    assert transformers.CLIPImageProcessor.from_pretrained(tmp_path).to_dict() == processor.to_dict()
    made.size["shortest_edge"] = 50
    assert processor.size["shortest_edge"] == 100
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made) and other.to_dict() == made.to_dict()


def tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({"<unk>": 0, "a": 1, "<|image_pad|>": 2, "<|video_pad|>": 3}, unk_token="<unk>")
    made = tokenizers.Tokenizer(words)
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", pad_token="<unk>", extra_special_tokens={
            "image_token": "<|image_pad|>", "video_token": "<|video_pad|>"},
    )  # fmt: skip


def test_a_processor_that_has_one():
    own, of_videos = make("Qwen2VLImageProcessor"), transformers.Qwen2VLVideoProcessor()
    processor = transformers.Qwen2VLProcessor(own, tokenizer(), of_videos)
    made, text = accelerate(processor), ["a <|image_pad|> a"]
    assert type(made) is type(processor) and made is not processor
    assert made.tokenizer is processor.tokenizer and made.video_processor is of_videos
    assert type(processor.image_processor) is transformers.Qwen2VLImageProcessor
    expected, found = (one(images=pictures()[:1], text=text, return_tensors="pt") for one in (processor, made))
    check(expected, found, level_of(own, {}), LEVELS["fixed"], SHARE["fixed"])
    video = {"videos": [np.stack([pictures()[0]] * 4)], "text": ["a <|video_pad|>"], "return_tensors": "pt"}
    check(processor(**video), made(**video))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", PROCESSORS)
def test_on_a_gpu(kind):
    """From images on the host and on the GPU; on the GPU transformers rounds once."""
    name, options = PROCESSORS[kind]
    processor = make(name, **options)
    here = [torch.from_numpy(one).permute(2, 0, 1) for one in pictures()]
    form = None if kind in ("limits", "longest") else "pt"
    compare(processor, [one.cuda() for one in here], "float", return_tensors=form)
    for given in (here, here[:1], pictures()):
        compare(processor, given, "float", device="cuda", return_tensors=form)
