"""The table of the code that stand-ins rely on, `octopus/integrations/code.tsv`: what of it has moved, or is new.

python tests/library/integrations/known_code.py            # print what the installed versions changed
python tests/library/integrations/known_code.py --write    # add their digests, once the tests pass with them
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from octopus.integrations import common

TABLE = Path(common.__file__).with_name("code.tsv")
STAND_INS = ("transformers", "ultralytics")


def rows():
    """Name and digest of all code that the installed packages have."""
    found = {}
    for package in STAND_INS:
        stand_in = import_module(f"octopus.integrations.{package}")
        for name, function in map(common.named, stand_in.relied_on()):
            if function is not None:
                found[name] = common.digest(function)
    return found


def main(write):
    known = {name: list(digests) for name, digests in common._digests().items()}
    for name, digest in rows().items():
        if digest not in known.setdefault(name, []):
            print(f"{name} is another than in all tested versions ({digest})")
            known[name].append(digest)
    if write:
        TABLE.write_text("".join(f"{name}\t{' '.join(digests)}\n" for name, digests in sorted(known.items())))


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
