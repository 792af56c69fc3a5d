"""What numbers, tables and figures of image shapes share: names, patches, and what a machine has."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DENOISERS, PATCH_TEXT
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.missing import with_reasons
from octopus_study.report.view import View, views

STUDY = "image_shape"
MODEL = "drunet"  # the only one that splits, of which the published jump is
PEAK, SPLITS = "allocated_peak", "split_calls"
SUBSETS = {"all": "all", "whole": "run whole", "split": "split"}
# The published jump: a width that is split, and the next one, which runs whole.
JUMP = (1228, 1296)
INTERVENTIONS = "-interventions"
GIGABYTE = 1e9
_NO_MEMORY = "No run of the study image_shape that is shown ran a model on a GPU."
_PATCH = re.compile(r"(\d+)x(\d+)")
no_memory = partial(with_reasons, study=STUDY, sentence=_NO_MEMORY)


class Patch(NamedTuple):
    """How an image is covered."""

    side: int
    batch: int

    @classmethod
    def of(cls, method: str) -> Patch | None:
        """Return what a method's name in rows says; None where it names no patches."""
        match = _PATCH.fullmatch(method)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def method(self) -> str:
        """Its name in rows."""
        return f"{self.side}x{self.batch}"

    @property
    def text(self) -> str:
        """Its name for readers: batch and sides."""
        return PATCH_TEXT.format(batch=self.batch, side=self.side)


def steps(view: View, model: str, quantity: str = PEAK) -> list[int]:
    """Return the distances between widths at which a machine knows a quantity of a model, ascending."""
    parts = (key.workload.partition("-step") for key in view.cases(PUBLISHED, quantity))
    return sorted({int(step) for name, _, step in parts if name == model and step})


def widths(view: View, workload: str, quantity: str = PEAK) -> list[Key]:
    """Return the keys of a quantity at the widths at which it is known, ascending."""
    keys = (key for key in view.cases(PUBLISHED, quantity) if key.workload == workload)
    return sorted(keys, key=lambda key: key.n or 0)


def models(view: View, quantity: str = PEAK) -> list[str]:
    """Return the models of which a machine knows a quantity over the width."""
    return [model for model in DENOISERS if steps(view, model, quantity)]


def with_interventions(view: View) -> list[str]:
    """Return the models of which a machine measured the interventions."""
    return [model for model in DENOISERS if widths(view, f"{model}{INTERVENTIONS}")]


def machines(frame: Frame, quantity: str = PEAK) -> list[View]:
    """Return the machines that know a quantity of some model; splits are also counted by following the shapes."""
    return [view for view in views(frame, STUDY) if models(view, quantity)]


def is_split(view: View, key: Key) -> bool:
    """Say whether a forward split the image."""
    return view.frame.value(key.but(quantity=SPLITS, layer="deterministic")) > 0


def patches(view: View, model: str) -> dict[Patch, Number]:
    """Return the time to cover the image by patch, side by side."""
    numbers = view.select(workload=f"{model}-patches", quantity="cover")
    pairs = ((Patch.of(number.method), number) for number in numbers if number.known)
    return dict(sorted((patch, number) for patch, number in pairs if patch))
