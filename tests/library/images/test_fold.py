"""Patch embeddings as one product of patch rows: those of the layers that they were folded from."""

import numpy as np
import pytest

from octopus import InputError, images

torch = pytest.importorskip("torch")
fold = pytest.importorskip("octopus.torch").fold_patch_embed

RNG = np.random.default_rng(2)
IMAGES = [torch.from_numpy(RNG.integers(0, 256, (*side, 3), np.uint8)) for side in ((90, 140), (200, 61))]
QWEN = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711], "scale": 255}
HALF = {"mean": 0.5, "std": 0.5, "scale": 255}


def conv(patch, dim, frames=0, bias=True):
    kernel = (frames, patch, patch)[not frames :]
    kind = torch.nn.Conv3d if frames else torch.nn.Conv2d
    return kind(3, dim, kernel, stride=kernel, bias=bias)


# Layer, patch and normalisation; the order of rows if it isn't CTPP.
MODELS = {
    "Qwen2-VL": lambda: (conv(14, 1280, 2, False), 14, QWEN),
    "Qwen2.5-VL": lambda: (torch.nn.Linear(1176, 1280, bias=False), 14, QWEN),  # as transformers fuses it
    "Qwen3-VL": lambda: (conv(16, 1152, 2), 16, HALF),
    "SigLIP": lambda: (conv(14, 1152), 14, HALF),
    "SigLIP2": lambda: (torch.nn.Linear(768, 768), 16, HALF, "PPC"),
    "CLIP": lambda: (conv(14, 1024, bias=False), 14, QWEN),
    "DINOv2": lambda: (conv(14, 384), 14, {**QWEN, "mean": [0.485, 0.456, 0.406]}),
}


@pytest.fixture(params=MODELS)
def model(request):
    """A layer with random weights, options of its rows, their normalisation, and its embeddings in float64."""
    torch.manual_seed(4)
    layer, patch, normal, *order = MODELS[request.param]()
    options = {"patch": patch, "merge": 1, "order": order[0] if order else "CTPP"}
    sizes = [[4 * patch, 5 * patch], [2 * patch, 7 * patch]]
    frames = {5: 2, 4: 1}.get(layer.weight.ndim, 1 if order else 2)
    rows = images.patch_rows(IMAGES, sizes, temporal=frames, **options)[0].double().numpy()
    shape = (-1, patch * patch, 3) if order else (-1, 3, frames * patch * patch, 1)
    mean, std = (np.array(normal[name], np.float64) for name in ("mean", "std"))
    if not order and mean.ndim:
        mean, std = mean[:, None, None], std[:, None, None]
    rows = torch.from_numpy(((rows.reshape(shape) / 255 - mean) / std).reshape(rows.shape))
    if not isinstance(layer, torch.nn.Linear):
        rows = rows.reshape(-1, 3, *layer.kernel_size)
    with torch.no_grad():
        right = layer.double()(rows).flatten(1)
    return layer.float(), options | {"sizes": sizes, "temporal": 1}, normal, right


@pytest.mark.parametrize("rows", [
    {}, {"dtype": "uint8"}, {"dtype": "int8", "offset": 128},
    {"mean": [123.0, 117.0, 104.0], "offset": (123, 117, 104)},
])  # fmt: skip
def test_embeddings_are_those_of_the_layer(model, rows):
    layer, options, normal, right = model
    folding = {"order": options["order"], "row_multiple": 8}
    if rows:
        folding |= {**normal, "offset": rows.get("offset")}
    own = {name: value for name, value in rows.items() if name != "offset"} or normal
    found, _ = images.patch_rows(IMAGES, row_multiple=8, **options, **own)
    made = fold(layer, **folding)
    assert found.shape[1] == made.in_features and made.in_features % 8 == 0
    with torch.no_grad():
        exact, single = fold(layer, dtype="float64", **folding)(found.double()), made(found.float())
    assert (exact - right).abs().max() <= (1e-12 if rows else 1e-6) * right.abs().max()
    limit = 2e-6 if rows.get("dtype") == "uint8" else 1e-6  # far from 0, bytes cost float32's sums a bit
    assert (single - right).norm() <= limit * right.norm()


def test_the_layer_stays_and_the_result_is_like_it():
    layer = conv(2, 5, 2).half().eval().requires_grad_(False)
    before = layer.weight.clone()
    made = fold(layer, scale=255)
    assert torch.equal(layer.weight, before) and layer.weight.shape == (5, 3, 2, 2, 2)
    assert made.weight.dtype == torch.float16 and not made.weight.requires_grad and not made.training
    assert fold(conv(2, 5, bias=False)).bias is None
    assert fold(conv(2, 5, 3), temporal=3, row_multiple=5).in_features == 40  # 36 and zeros
    assert fold(torch.nn.Linear(48, 5), frames=1, channels=3).in_features == 48


@pytest.mark.parametrize(("layer", "options", "message"), [
    (torch.nn.Conv1d(3, 4, 2), {}, "layer must be a Conv2d, Conv3d or Linear of torch.nn"),
    (torch.nn.Conv2d(3, 4, 2), {}, "its kernel as stride"), (torch.nn.Conv2d(3, 4, 2, 2, 1), {}, "no padding"),
    (torch.nn.Conv2d(3, 4, (2, 3), (2, 3)), {}, "square patches"),
    (torch.nn.Conv2d(3, 3, 2, 2, groups=3), {}, "dilation or groups"),
    (torch.nn.Linear(1175, 4), {}, "rows of 1175 values, which are no square patches of 3 channels and 2 time steps"),
    (conv(2, 4, 2), {"temporal": 3}, "temporal must be 1, or the 2 time steps"),
    (conv(2, 4, 2), {"temporal": 2, "order": "PPC"}, "temporal must be 1"),
    (conv(2, 4), {"mean": [1, 2]}, "mean must be one finite number or 3"),
    (conv(2, 4), {"std": 0}, "std must be positive"),
    (conv(2, 4), {"row_multiple": 0}, "row_multiple must be a positive integer"),
    (conv(2, 4), {"order": "CPP"}, "order='CPP' is unknown"), (conv(2, 4), {"dtype": "uint8"}, "dtype must be a float"),
    (conv(2, 4), {"dtype": "tensor"}, "dtype must be a float of torch, found 'tensor'"),
])  # fmt: skip
def test_what_cannot_be_folded(layer, options, message):
    with pytest.raises(InputError, match=message):
        fold(layer, **options)
