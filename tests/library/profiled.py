"""Which functions of the library a call enters."""

import sys
from pathlib import Path

import octopus

PACKAGE = str(Path(octopus.__file__).parent)


def entered(call, *arguments, **options):
    """The file and the name of each."""
    found = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.append((frame.f_code.co_filename, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call(*arguments, **options)
    finally:
        sys.setprofile(before)
    return found


def looked_at(call, *arguments, **options):
    """Whether a call is looked at anew: one that looks like one before enters no function that is named so."""
    return any(name.endswith("_anew") for _, name in entered(call, *arguments, **options))
