"""Compare the code that stand-ins rely on (`octopus/integrations/code.tsv`) with the installed packages.

Prints which functions these have changed or no longer have. With `--write` their digests are added to the table: once
the tests pass with a new version.
"""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("YOLO_AUTOINSTALL", "false")

from octopus.integrations import common

TABLE = Path(common.__file__).with_name("code.tsv")
STAND_INS = ("transformers", "ultralytics", "rapidocr")


def main(write):
    known = {name: list(digests) for name, digests in common._digests().items()}
    for package in STAND_INS:
        print(f"{package} {version(package)}")
        for name, function in map(common.named, import_module(f"octopus.integrations.{package}").relied_on()):
            if function is None:
                print(f"  {name} is gone")
            elif common.digest(function) not in known.setdefault(name, []):
                print(f"  {name} has changed")
                known[name].append(common.digest(function))
    if write:
        TABLE.write_text("".join(f"{name}\t{' '.join(digests)}\n" for name, digests in sorted(known.items())))


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
