"""No kind of input, to no processor, takes the stand-in longer than the original: one image, and several."""

import io
import statistics
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="torchvision is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from octopus.integrations.transformers import FallbackWarning, accelerate  # noqa: E402

SIDES = [(480, 640), (700, 300), (333, 512), (1080, 1920)]
NOISE = 0.95  # of the original's speed
TRIES, RUNS = 4, 7  # as often a cell is measured that looks slower; runs of each in turn
PROCESSORS = (
    "Qwen2VLImageProcessor", "SiglipImageProcessor", "Siglip2ImageProcessor", "CLIPImageProcessor",
    "BitImageProcessor", "ViTImageProcessor", "SiglipImageProcessorPil", "Qwen2VLImageProcessorPil",
)  # fmt: skip


def jpeg(pixels):
    """A file that is opened and not read, anew for each call."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return lambda: Image.open(io.BytesIO(file.getvalue()))


def chw(pixels):
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


INPUTS = {
    **{f"Pillow, {mode}": lambda pixels, mode=mode: Image.fromarray(pixels).convert(mode)
       for mode in ("RGB", "L", "RGBA", "P")},
    "a file": jpeg,
    "NumPy": lambda pixels: pixels,
    "torch": chw,
    "torch, a view": lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1),
}  # fmt: skip
ON_GPU = {
    **{name: make for name, make in INPUTS.items() if name != "a file"},
    "torch, page-locked": lambda pixels: chw(pixels).pin_memory(),
    "torch, on the GPU": lambda pixels: chw(pixels).cuda(),
}


def pictures(count):
    generator = np.random.default_rng(3)
    sides = SIDES[:count]
    small = [generator.integers(0, 256, (h // 16 + 1, w // 16 + 1, 3), np.uint8) for h, w in sides]
    return [one.repeat(16, 0).repeat(16, 1)[:h, :w].copy() for one, (h, w) in zip(small, sides, strict=True)]


def times(calls, wait):
    """Median seconds of each, in turn."""
    found = [[] for _ in calls]
    for _ in range(RUNS):
        for call, seconds in zip(calls, found, strict=True):
            begin = time.perf_counter()
            call()
            wait()
            seconds.append(time.perf_counter() - begin)
    return [statistics.median(seconds) for seconds in found]


def speed(processor, given, wait=lambda: None, **options):
    """Of the stand-in, over the original's."""
    stand_in, best = accelerate(processor), 0.0

    def run(one):
        images = [image() if callable(image) else image for image in given]
        one(images, return_tensors="pt", do_convert_rgb=True, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FallbackWarning)
        run(stand_in)  # compiles
        for _ in range(TRIES):
            original, ours = times([lambda: run(processor), lambda: run(stand_in)], wait)
            best = max(best, original / ours)
            if best >= NOISE:
                break
    return best


@pytest.mark.alone
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("form", INPUTS)
@pytest.mark.parametrize("name", PROCESSORS)
def test_no_input_is_slower_on_the_cpu(name, form, count):
    given = [INPUTS[form](one) for one in pictures(count)]
    assert speed(getattr(transformers, name)(), given) >= NOISE


@pytest.mark.alone
@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("form", ON_GPU)
@pytest.mark.parametrize("name", [name for name in PROCESSORS if not name.endswith("Pil")])
def test_no_input_is_slower_on_a_gpu(name, form, count):
    given = [ON_GPU[form](one) for one in pictures(count)]
    processor = getattr(transformers, name)()
    assert speed(processor, given, torch.cuda.synchronize, device="cuda") >= NOISE
