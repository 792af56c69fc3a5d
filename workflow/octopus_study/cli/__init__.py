"""What the artifact adds to the command `octopus`; the commands themselves are imported when one is run.

The lines of help are here, so that `octopus --help` needs neither them nor Typer.
"""

import gc
import logging
from collections.abc import Sequence
from functools import partial

from octopus.cli import Command

HELP = {
    "add-gpu": "Measure everything on this machine, vet it, and add it to the references; says first what is missing.",
    "config": "Check a configuration and print it with every default filled in.",
    "fetch": "Get a data set, check it against its pinned digest, and write its manifest.",
    "lint-results": "Check whether stored powers and energies can be what they say; exit with 1 if a table is refused.",
    "measure": "Run one study and write its rows and their provenance.",
    "power-selftest": "Test whether a power sensor follows a known load; without one that does, say why and exit "
    "with 1.",
    "report": "Numbers, tables, figures, claims and the paper from result rows.",
    "trace": "Say where a number or a claim comes from, and where the paper uses it.",
    "verify": "Derive everything anew from the stored rows; exit with 1 if something differs.",
    "validate": "Check result files against their schemas.",
}
# They make hundreds of thousands of numbers that stay, among which Python, left alone, looks for garbage for a fifth of
# their time.
READING = ("report", "trace", "verify")


def run(name: str, arguments: Sequence[str]) -> int:
    """Run a command of the artifact; ends with `SystemExit`, as Typer's applications do."""
    from octopus_study.cli.commands import app

    logging.getLogger("octopus_study").setLevel(logging.getLogger("octopus").level)
    if name in READING:
        gc.set_threshold(100_000, 20, 20)
    return app([name, *arguments], prog_name="octopus")


COMMANDS = {name: Command(text, partial(run, name)) for name, text in HELP.items()}
