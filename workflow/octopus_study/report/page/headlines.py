"""The results that the page begins with: bars on linear axes, each a number with its trace."""

from typing import NamedTuple

from octopus_study.names import IMAGE_INPUTS
from octopus_study.report.frame import Frame, Number
from octopus_study.report.page.content import method_name

_CROPS = "arena.visdrone.n1000.{}."
_OTHERS = "cuframe roiconvert grid-sample published roi-align"


class Headline(NamedTuple):
    """A question, the numbers that answer it, and the claim that they decide; `{}` stands for each of `parts`."""

    question: str
    claim: str
    number: str
    parts: str


HEADLINES = (
    Headline("How long does the GPU take to crop, resize and normalise 1000 boxes of one frame?", "c3-kernel",
             _CROPS + "crop_resize_normalize.device", f"write-bound octopus cvcuda-scalar cvcuda {_OTHERS}"),
    Headline("And from boxes on the host to the batch on the GPU?", "c4-host",
             _CROPS + "end_to_end.host", f"octopus {_OTHERS} cvcuda-views n-launches-fused"),
    Headline("Does it matter how a thread finds its image? 256 images of 64 to 512 px to patch rows", "c6-owners",
             "images.small.n256.{}.kernel.device",
             "write-bound block-search block-metadata lookup thread-search padded-grid"),
    Headline("How much faster is Qwen2-VL's processor, replaced by one import? 32 images, by input; JPEG: other pixels",
             "c7-images", "pipelines.model-ragged.n32.{}.octopus.prepare.host.speedup_over_transformers",
             "torch numpy torch-gpu pillow jpeg"),
    Headline("How much energy does a batch of 1000 boxes take?", "c8-energy",
             "power.visdrone.n1000.{}.energy_per_frame.back_to_back", "octopus grid-sample published cvcuda-views"),
)  # fmt: skip


class Bar(NamedTuple):
    """A number as a bar: its length is a share of the longest."""

    name: str
    number: Number
    share: float
    own: bool


def headlines(frame: Frame) -> list[tuple[Headline, str, list[Bar]]]:
    """Return each headline with the machine that has most of its numbers, and their bars, the shortest first; without
    those that were not measured."""
    found = []
    for one in HEADLINES:
        study = one.number.partition(".")[0]
        of_machine = {machine: _numbers(frame, machine, one) for machine in frame.shown(study)}
        machine = max(of_machine, key=lambda name: len(of_machine[name]), default="")
        numbers = sorted(of_machine.get(machine, ()), key=lambda number: number.value)
        if len(numbers) > 1:
            found.append((one, machine, [_bar(number, numbers[-1].value) for number in numbers]))
    return found


def _numbers(frame: Frame, machine: str, one: Headline) -> list[Number]:
    ids = (f"{machine}.{one.number.format(part)}" for part in one.parts.split())
    return [number for name in ids if (number := frame.get(name)) and number.known]


def _bar(number: Number, longest: float) -> Bar:
    name = IMAGE_INPUTS.get(number.input) or method_name(number.study, number.method)
    own = number.method in ("octopus", "block-search")
    return Bar(name + " \u2020" * number.differs, number, round(number.value / longest, 4), own)
