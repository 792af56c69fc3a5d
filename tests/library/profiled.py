"""Which functions of the library a call enters."""

import cProfile
from pathlib import Path

import octopus

PACKAGE = str(Path(octopus.__file__).parent)


def entered(call, *arguments, **options):
    """The file and the name of each, as often as it is; counted in C, since Python at each call takes far longer."""
    profile = cProfile.Profile(subcalls=False, builtins=False)
    profile.runcall(call, *arguments, **options)
    codes = [(found.code, found.callcount) for found in profile.getstats() if not isinstance(found.code, str)]
    return [(code.co_filename, code.co_name) for code, count in codes for _ in range(count)
            if code.co_filename.startswith(PACKAGE)]  # fmt: skip


def looked_at(call, *arguments, **options):
    """Whether a call is looked at anew: one that looks like one before enters no function that is named so."""
    return any(name.endswith("_anew") for _, name in entered(call, *arguments, **options))
