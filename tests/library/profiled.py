"""Which functions of the library a call enters."""

from __future__ import annotations

import sys
from pathlib import Path

import octopus

PACKAGE = str(Path(octopus.__file__).parent)


def looked_at(call, *arguments, **options):
    """Whether a call is looked at anew: one that looks like one before enters no function that is named so."""
    found = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call(*arguments, **options)
    finally:
        sys.setprofile(before)
    return any(name.endswith("_anew") for name in found)
