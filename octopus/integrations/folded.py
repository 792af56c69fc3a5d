"""The first layer of a vision model that takes rows of two kinds: the original's, and those that hold each patch once.

The model's half of `transformers.fold`; it knows torch alone.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from octopus.errors import InputError, shown_type

ROW_MULTIPLE = 8  # values of 16 bits, of which fast matrix products take rows


class Fold(NamedTuple):
    """What a processor's rows and a model's first layer agree on, see `fold`."""

    patch: int
    normal: tuple[Any, ...]  # mean, std and scale, which the layer sees to
    middle: tuple[float, ...]  # of each channel, what rows hold less than pixels: whole numbers, near the mean
    linear: Any  # how the layer does that, see `octopus.torch.linear_of`
    frames: int
    order: str
    width: int  # values of a row


def linear_in(layer: Any) -> Any:
    """The convolution or the linear layer of a patch embedding; of one that transformers has fused, too."""
    return getattr(layer, "proj", None) or getattr(layer, "linear_proj", None) or layer


def embedding_of(model: Any) -> tuple[Any, str]:
    """A model's patch embedding for rows, and the last part of its name."""
    torch = import_module("torch")
    kinds = {"patch_embed": (torch.nn.Conv3d, torch.nn.Linear), "patch_embedding": (torch.nn.Linear,)}
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"model must be a module of torch, found {shown_type(model)}")
    found = [
        (layer, name)
        for path, layer in model.named_modules()
        if (name := path.rpartition(".")[2]) in kinds and isinstance(linear_in(layer), kinds[name])
    ]
    if len(found) != 1:
        raise InputError(
            f"fold needs a model with one patch embedding for rows, as Qwen2-VL's family and SigLIP2 have, and found "
            f"{len(found)} in {type(model).__name__}; for one that takes whole images, accelerate(processor, "
            "dtype=model.dtype) is what there is"
        )
    if "forward" in found[0][0].__dict__:
        raise InputError(
            "the patch embedding's forward is another's, such as a hook that moves weights; fold it before"
        )
    return found[0]


class FoldedLayer:
    """What a patch embedding has beside its original class: rows of a width of their own go through folded weights."""

    _fold: Fold
    _kept: tuple[Any, Any] = None, None

    def forward(self, rows: Any) -> Any:
        if rows.shape[-1] != self._fold.width:
            return super().forward(rows)  # type: ignore[misc]
        import torch

        weight, bias = self._weights()
        return torch.nn.functional.linear(rows.to(weight.dtype), weight, bias)

    def _weights(self) -> Any:
        """Those folded from the layer's own, which are made anew where these have changed, or gradients go there."""
        import torch

        linear = linear_in(self)
        weight = linear.weight
        if torch.compiler.is_compiling() or (torch.is_grad_enabled() and weight.requires_grad):
            return self._made(linear)
        given = [one for one in (weight, linear.bias) if one is not None]
        key = [(one.data_ptr(), one.dtype, one.is_inference() or one._version) for one in given]
        if self._kept[0] != key:
            self._kept = key, self._made(linear)
        return self._kept[1]

    def _made(self, linear: Any) -> Any:
        from octopus.torch import folded

        fold, dtype = self._fold, linear.weight.dtype
        weight, bias = folded(linear, fold.linear, 1, fold.frames, len(fold.middle), fold.order, ROW_MULTIPLE)
        return weight.to(dtype), bias.to(dtype)  # type: ignore[union-attr]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _blank, (type(self).__mro__[2],), {**self.__dict__, "_kept": (None, None)}


@cache
def folded_class(kind: type) -> type:
    return type(kind.__name__, (FoldedLayer, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _blank(kind: type) -> Any:
    return object.__new__(folded_class(kind))


def check_embeddings(layer: Any, fold: Fold) -> None:
    """Refuse a layer that computes something else of rows than its weights say."""
    import torch

    pixels = np.random.default_rng(0).integers(0, 256, (4, len(fold.middle), 1, fold.patch**2))
    mean, std, scale, middle = (np.array(each)[:, None, None] for each in (*fold.normal, fold.middle))
    usual, short = ((pixels / scale - mean) / std).repeat(fold.frames, axis=2), pixels - middle
    if fold.order == "PPC":
        usual, short = usual.transpose(0, 2, 3, 1), short.transpose(0, 2, 3, 1)
    rows, weight = np.zeros((4, fold.width)), linear_in(layer).weight
    rows[:, : short[0].size] = short.reshape(4, -1)
    given = [torch.from_numpy(each).to(weight.device, weight.dtype) for each in (usual.reshape(4, -1), rows)]
    with torch.no_grad():
        before, after = (layer(each).double() for each in given)
    if before.shape != after.shape or not (after - before).norm() <= 0.02 * before.norm():
        raise InputError("the model's patch embedding computes something else than a product of its weights with rows")
