"""The command `octopus`: `doctor` and `tune` are the library's; other packages add theirs as entry points.

An entry of the group `octopus.commands` names a mapping from names to `Command`.
"""

import argparse
import difflib
import json
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import NamedTuple

from octopus import __version__
from octopus.errors import OctopusError

DESCRIPTION = "Crop, resize and normalise batches of items of different size in one launch, and measure it."


class Command(NamedTuple):
    """One command of `octopus`."""

    help: str  # one line for the list of commands
    # Takes the arguments behind the command's name; returns the exit code, or raises `SystemExit` or an `OctopusError`.
    run: Callable[[Sequence[str]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without one, show the list and return 2.

    An error that Octopus raises on purpose is one paragraph on stderr and exit code 1.
    """
    commands = {**COMMANDS, **_added()}
    parser = argparse.ArgumentParser(
        "octopus", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"octopus {__version__}")
    parser.add_argument("--verbose", "-v", action="store_true", help="log details")
    parser.add_argument("command", nargs="?", help="one of those below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="octopus COMMAND --help lists them")
    parser.epilog = "\n".join(
        ["commands:", *(f"  {name:<16}{command.help}" for name, command in sorted(commands.items()))]
    )
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 2
    if given.command not in commands:
        near = difflib.get_close_matches(given.command, commands, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        if not near and len(commands) == len(COMMANDS):
            hint = "; a clone of the repository adds those of the measurements (make install)"
        parser.error(f"no such command {given.command!r}{hint}")
    _log(given.verbose)
    try:
        return commands[given.command].run(given.arguments)
    except OctopusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _added() -> dict[str, Command]:
    """The commands of other packages; one that can't be loaded must not stop the library's own."""
    commands: dict[str, Command] = {}
    for entry in entry_points(group="octopus.commands"):
        try:
            commands |= entry.load()
        except Exception as error:
            print(f"warning: the commands of {entry.value} can't be loaded: {error}", file=sys.stderr)
    return commands


def _log(verbose: bool) -> None:
    logging.basicConfig(level=logging.WARNING, format="[%(asctime)s] %(levelname)-8s %(message)s", datefmt="%X")
    logging.getLogger("octopus").setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.getLogger("numba").setLevel(logging.WARNING)  # it tells every pending free at INFO


def doctor(arguments: Sequence[str]) -> int:
    """Show what this machine has, and for each missing thing what would provide it."""
    from octopus.doctor import diagnose, lines

    parser = _parser(doctor)
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    findings_as_json = parser.parse_args(arguments).json
    findings = diagnose()
    if findings_as_json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        print("\n".join(lines(findings, sys.stdout.isatty())))
    return 0


def tune(arguments: Sequence[str]) -> int:
    """Find this machine's fastest way to know each element's item, and show the evidence."""
    from octopus.ragged.tuner import tune as probe

    parser = _parser(tune)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="what shall be probed")
    parser.add_argument("--uses", type=int, default=1, help="how often a batch of the same sizes is used")
    parser.add_argument(
        "--keep", action=argparse.BooleanOptionalAction, default=True, help='keep the choice for strategy="auto"'
    )
    given = parser.parse_args(arguments)
    print(probe(given.device, uses=given.uses, keep=given.keep))
    print('kept for strategy="auto"' if given.keep else "not kept")
    return 0


def _parser(run: Callable[[Sequence[str]], int]) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(f"octopus {run.__name__}", description=run.__doc__)


COMMANDS = {run.__name__: Command((run.__doc__ or "").strip(), run) for run in (doctor, tune)}
