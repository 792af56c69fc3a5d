"""`fold`: a processor and a model's first layer change together, and what the model computes stays."""

from __future__ import annotations

import copy
import pickle
import warnings
from pkgutil import resolve_name
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="torchvision is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
torch = pytest.importorskip("torch")

from test_transformers import tokenizer  # noqa: E402

from octopus.errors import InputError  # noqa: E402
from octopus.integrations import common  # noqa: E402
from octopus.integrations.transformers import FallbackWarning, accelerate, fold  # noqa: E402

QWEN = {"depth": 1, "hidden_size": 64, "num_heads": 2}
QWEN3 = {"patch_size": 16, "size": {"shortest_edge": 4096, "longest_edge": 16777216}, "image_mean": [0.5] * 3,
         "image_std": [0.5] * 3}  # fmt: skip
SIGLIP = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
RNG = np.random.default_rng(3)
PICTURES = [RNG.integers(0, 256, (*side, 3), np.uint8) for side in ((97, 143), (200, 120), (64, 64))]


class Pair(NamedTuple):
    """A vision tower's class, which gets random weights, its processor's, and how its first layer is named."""

    tower: str
    config: dict
    processor: str
    options: dict
    layer: str = "patch_embed"

    def make(self, dtype=torch.float32):
        kind = resolve_name(f"transformers.models.{self.tower}")
        torch.manual_seed(0)
        tower = kind(kind.config_class(**self.config)).to(dtype).eval()
        return tower, getattr(transformers, self.processor)(**self.options)


PAIRS = {
    "Qwen2-VL": Pair(
        "qwen2_vl.modeling_qwen2_vl.Qwen2VisionTransformerPretrainedModel", {**QWEN, "embed_dim": 64},
        "Qwen2VLImageProcessor", {},
    ),
    "Qwen2.5-VL": Pair(
        "qwen2_5_vl.modeling_qwen2_5_vl.Qwen2_5_VisionTransformerPretrainedModel",
        {**QWEN, "intermediate_size": 64, "fullatt_block_indexes": [0]}, "Qwen2VLImageProcessor", {},
    ),
    "Qwen3-VL": Pair(
        "qwen3_vl.modeling_qwen3_vl.Qwen3VLVisionModel", {**QWEN, "intermediate_size": 64, "out_hidden_size": 64},
        "Qwen2VLImageProcessor", QWEN3,
    ),
    "SigLIP2": Pair(
        "siglip2.modeling_siglip2.Siglip2VisionModel", {**SIGLIP, "patch_size": 14, "num_patches": 64},
        "Siglip2ImageProcessor", {"patch_size": 14, "max_num_patches": 64}, "patch_embedding",
    ),
}  # fmt: skip


@pytest.fixture(params=PAIRS)
def pair(request):
    return PAIRS[request.param]


def layer_of(tower, pair):
    return next(layer for name, layer in tower.named_modules() if name.rpartition(".")[2] == pair.layer)


def run(tower, inputs):
    """What a tower makes of a processor's answer, without what fills up."""
    rows, *rest = inputs.values()
    with torch.no_grad():
        found = tower(rows.to(tower.dtype), *rest)
    states = found if isinstance(found, torch.Tensor) else found.last_hidden_state
    return states[inputs["pixel_attention_mask"].bool()] if "pixel_attention_mask" in inputs else states


def rows_of(inputs):
    """The rows that are an image's."""
    rows = inputs["pixel_values"]
    return rows[inputs["pixel_attention_mask"].bool().to(rows.device)] if rows.ndim == 3 else rows


def test_the_model_computes_what_it_did(pair):
    tower, processor = pair.make()
    names = list(tower.state_dict())
    before = processor(PICTURES, return_tensors="pt")
    right = run(tower, before)
    folded = fold(processor, tower)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        after = folded.processor(PICTURES, return_tensors="pt")
    (*_, usual), (*_, short) = before["pixel_values"].shape, after["pixel_values"].shape
    assert short % 8 == 0 and short < (usual if pair.layer == "patch_embed" else usual + 8)
    assert folded.model is tower and list(tower.state_dict()) == names
    assert (run(tower, after) - right).norm() <= 1e-5 * right.norm()
    assert torch.equal(run(tower, before), right)  # rows of the original, and of videos
    folded.undo()
    assert type(layer_of(tower, pair)) is type(layer_of(pair.make()[0], pair))
    assert torch.equal(run(tower, before), right)
    again = folded.processor(PICTURES, return_tensors="pt")["pixel_values"]
    assert (again - before["pixel_values"]).abs().max() <= 1e-4


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_in_bfloat16_embeddings_are_as_exact_as_before(pair, device):
    tower, processor = pair.make(torch.bfloat16)
    tower, asked = tower.to(device), {"return_tensors": "pt", "device": device}
    rows = rows_of(processor(PICTURES, **asked))
    layer = layer_of(tower, pair)
    with torch.no_grad():
        exact, usual = copy.deepcopy(layer).double()(rows.double()), layer(rows.bfloat16()).double()
        folded = fold(processor, tower)
        short = folded.processor(PICTURES, **asked)
        assert short["pixel_values"].dtype == torch.bfloat16
        found = layer(rows_of(short)).double()
    # 25 % more if rows were normalised; on a GPU one pixel of 600 is a level off torch's, which made it 22 %.
    limit = 1.05 if device == "cpu" else 1.3
    assert (found - exact).norm() <= limit * (usual - exact).norm()
    assert torch.cosine_similarity(found.flatten(), exact.flatten(), 0) >= 0.9999


def test_rows_of_one_width_alone_change_nothing_of_the_model():
    """Patches of 16 and one time step: such rows can't be told from the original's, and serve as well."""
    pair = PAIRS["SigLIP2"]._replace(config={**SIGLIP, "num_patches": 64}, options={"max_num_patches": 64})
    tower, processor = pair.make(torch.bfloat16)
    folded = fold(processor, tower)
    assert type(layer_of(tower, pair)) is torch.nn.Linear
    found = folded.processor(PICTURES, return_tensors="pt")["pixel_values"]
    usual = processor(PICTURES, return_tensors="pt")["pixel_values"]
    assert found.dtype == torch.bfloat16 and (found - usual).abs().max() <= 2**-7
    folded.undo()


def test_layers_that_transformers_has_fused(tmp_path):
    pair = PAIRS["Qwen2-VL"]
    tower, processor = pair.make()
    tower.save_pretrained(tmp_path)
    right = run(tower, processor(PICTURES, return_tensors="pt"))
    fused = type(tower).from_pretrained(tmp_path, fusion_config={"patch_embeddings": True}).eval()
    assert isinstance(fused.patch_embed.linear_proj, torch.nn.Linear)
    folded = fold(processor, fused)
    found = run(fused, folded.processor(PICTURES, return_tensors="pt"))
    assert (found - right).norm() <= 1e-5 * right.norm()


def test_weights_that_change_are_folded_anew():
    tower, processor = PAIRS["Qwen3-VL"].make()
    folded = fold(processor, tower)
    after, before = (one(PICTURES, return_tensors="pt") for one in (folded.processor, processor))
    run(tower, after)
    with torch.no_grad():
        tower.patch_embed.proj.weight.mul_(2)
        tower.patch_embed.proj.bias.add_(1)
    assert (run(tower, after) - run(tower, before)).norm() <= 1e-5 * run(tower, before).norm()
    tower.bfloat16()
    assert run(tower, after).dtype == torch.bfloat16
    tower.patch_embed.proj.requires_grad_(True)
    tower.patch_embed(after["pixel_values"]).sum().backward()
    assert tower.patch_embed.proj.weight.grad.abs().sum() > 0


def test_copies_of_both_work_as_they_do():
    tower, processor = PAIRS["Qwen2-VL"].make()
    folded = fold(processor, tower)
    right = run(tower, folded.processor(PICTURES, return_tensors="pt"))
    for copied in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        other, made = copied(tower), copied(folded.processor)
        assert torch.equal(run(other, made(PICTURES, return_tensors="pt")), right)


def test_a_processor_that_has_one():
    tower, own = PAIRS["Qwen2-VL"].make()
    processor = transformers.Qwen2VLProcessor(own, tokenizer(), transformers.Qwen2VLVideoProcessor())
    folded, text = fold(processor, tower), ["a <|image_pad|> a"]
    assert type(folded.processor) is type(processor) and processor.image_processor is own
    short = folded.processor(images=PICTURES[:1], text=text, return_tensors="pt")
    assert short["pixel_values"].shape[1] == 592 and folded.processor.video_processor is processor.video_processor
    folded.undo()
    again = folded.processor(images=PICTURES[:1], text=text, return_tensors="pt")
    assert again["pixel_values"].shape[1] == 1176 and torch.equal(again["input_ids"], short["input_ids"])


def test_the_layer_is_compiled_whole():
    tower, processor = PAIRS["Qwen2-VL"].make()
    rows = fold(processor, tower).processor(PICTURES, return_tensors="pt")["pixel_values"]
    torch._dynamo.reset()
    compiled = torch.compile(tower.patch_embed, backend="eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(compiled(rows), tower.patch_embed(rows))


def test_other_calls_are_answered_by_the_original():
    tower, processor = PAIRS["Qwen2-VL"].make()
    folded = fold(processor, tower)
    for options in ({"image_mean": [0.5] * 3}, {"do_normalize": False}):
        right = run(tower, processor(PICTURES, return_tensors="pt", **options))
        with pytest.warns(FallbackWarning, match="the model was folded for other patches, or another normalisation"):
            found = folded.processor(PICTURES, return_tensors="pt", **options)
        assert torch.equal(run(tower, found), right)
        common._warned.clear()


@pytest.mark.parametrize("name", ["Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL"])
@pytest.mark.parametrize("number", [1, 2])
def test_another_model_refuses_the_rows(name, number):
    tower, processor = PAIRS[name].make()
    other, _ = PAIRS[name].make()
    folded = fold(processor, tower)
    with pytest.raises(RuntimeError):
        run(other, folded.processor(PICTURES[:number], return_tensors="pt"))


def test_what_does_not_fit():
    tower, processor = PAIRS["Qwen2-VL"].make()
    clip = transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**SIGLIP))
    other = transformers.Qwen2VLImageProcessor(patch_size=16)
    for given, model, message in (
        (processor, clip, r"found 0 in CLIPVisionModel; for one that takes whole images, accelerate"),
        (processor, "qwen", "model must be a module of torch"),
        (transformers.CLIPImageProcessor(), tower, "wants rows that CLIPImageProcessor doesn't make"),
        (other, tower, "takes rows of 1176 values, and the processor makes 1536 of a patch"),
    ):
        with pytest.raises(InputError, match=message):
            fold(given, model)
    folded = fold(processor, tower)
    for given in (processor, folded.processor):
        with pytest.raises(InputError, match="folded already"):
            fold(given, tower)
    assert accelerate(folded.processor, dtype="float32") is folded.processor


def test_a_layer_that_does_more_is_refused_and_left():
    tower, processor = PAIRS["Qwen2-VL"].make()
    kind = type(tower.patch_embed)
    tower.patch_embed.__class__ = type("Own", (kind,), {"forward": lambda self, rows: kind.forward(self, rows) * 2})
    own = type(tower.patch_embed)
    with pytest.raises(InputError, match="computes something else"):
        fold(processor, tower)
    assert type(tower.patch_embed) is own and not hasattr(tower.patch_embed, "_fold")
    tower.patch_embed.forward = tower.patch_embed.forward
    with pytest.raises(InputError, match="forward is another's"):
        fold(processor, tower)
