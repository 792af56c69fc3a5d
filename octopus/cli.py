"""The command `octopus`: `tune` is the library's own; other packages add theirs as entry points `octopus.commands`.

Such an entry is a function that takes the command's name and its arguments and returns the exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from octopus import __version__
from octopus.errors import OctopusError

Command = Callable[[str, Sequence[str]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error that Octopus raises on purpose is one line on stderr and exit code 1."""
    added = {entry.name: entry for entry in entry_points(group="octopus.commands")}
    parser = argparse.ArgumentParser(
        "octopus", description="One launch for batches whose items differ in size."
    )
    parser.add_argument("--version", action="version", version=f"octopus {__version__}")
    parser.add_argument("--verbose", "-v", action="store_true", help="log details")
    parser.add_argument("command", choices=sorted({*OWN, *added}))
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    run: Command = OWN[given.command] if given.command in OWN else added[given.command].load()
    try:
        return run(given.command, ["--verbose"] * given.verbose + given.arguments)
    except OctopusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def tune(name: str, arguments: Sequence[str]) -> int:
    """Find this machine's fastest way to know each element's item, and show the evidence."""
    parser = argparse.ArgumentParser(f"octopus {name}", description=tune.__doc__)
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="what shall be probed"
    )
    parser.add_argument("--uses", type=int, default=1, help="how often a batch of the same sizes is used")
    parser.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        default=True,
        help='keep the choice for strategy="auto"',
    )
    parser.add_argument("--verbose", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    from octopus.ragged.tuner import tune as probe

    found = probe(given.device, uses=given.uses, keep=given.keep)
    print("\n".join(found.lines()))
    print(f"{found.device}: {found.choice}, block_metadata with {found.threshold} elements per block")
    print(f"probes took {found.probe_ms:.1f} ms" + ("; kept" if given.keep else ""))
    return 0


OWN: dict[str, Command] = {"tune": tune}
