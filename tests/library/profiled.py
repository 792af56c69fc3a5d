"""Which functions of the library a call enters."""

from __future__ import annotations

import sys
from pathlib import Path

import octopus

PACKAGE = str(Path(octopus.__file__).parent)


def entered(call, *arguments, **options):
    """Code of the Python functions within the package that a call enters in this thread, and what it returns."""
    found = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = call(*arguments, **options)
    finally:
        sys.setprofile(before)
    return found, result


def looked_at(call, *arguments, **options):
    """Whether a call went the long way, on which all of it is looked at."""
    return any(code.co_name.endswith("_anew") for code in entered(call, *arguments, **options)[0])
