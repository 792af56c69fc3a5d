"""For what still names numbers by hand-built ids. TODO of this branch: goes when every study is converted."""

from __future__ import annotations

import math
import re

from octopus_study.report.build import build_numbers  # noqa: F401
from octopus_study.report.frame import Frame, Key, Number, Source
from octopus_study.report.frame import make_number as make

Numbers = Frame
_REGULAR = re.compile(r"([^.]+)\.([^.]+)\.([^.]+)\.n(\d+)\.([^.]+)\.([^.]+)(?:\.([^.]+)(?:\.(.+))?)?")
_OTHER = re.compile(r"(times)_(.*)|(share)_of_(.*)|(\w+)_over_(.*)|(over)_(.*)")


def parse(identifier: str) -> Key:
    if match := _REGULAR.fullmatch(identifier):
        machine, study, workload, n, method, quantity, layer, derived = match.groups("")
        other = ""
        if found := _OTHER.fullmatch(derived):
            derived, other = (part for part in found.groups() if part is not None)
        return Key(machine, study, workload, int(n), method, quantity, layer, derived, other)
    machine, _, rest = identifier.partition(".")
    study, _, rest = rest.partition(".")
    return Key(machine, study, quantity=rest)


def make_number(
    identifier, origin, selector, unit, value, low=math.nan, high=math.nan, *, text=None, note=""
):
    role, _, dataset, source = origin
    source = source.file if isinstance(source, Source) else source
    where = Source(role, dataset, source, selector)
    return make(parse(identifier), where, unit, value, low, high, text=text, note=note, identifier=identifier)


def matching(self, pattern):
    compiled = re.compile(pattern)
    pairs = ((compiled.fullmatch(number.id), number) for number in self)
    return [(match, number) for match, number in pairs if match]


Frame.matching = matching
Frame.scopes = Frame.machines
__all__ = ["Number", "Numbers", "make_number"]
