"""Runs of Snakemake for `workflow_copy`, each in a fork of this process, which has imported what they all import.

A line of standard input has arguments and environment of one; its exit code and what it printed come back as a line.
"""

import json
import os
import sys
import tempfile
from importlib import import_module

from snakemake import cli

from octopus_study.measure.digest import data_code, report_code, study_code
from octopus_study.names import STUDIES
from octopus_study.report import outputs


def be_snakemake(arguments: list[str], environment: dict[str, str], printed: int) -> None:
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.environ.clear()
    os.environ.update(environment)
    code: object = 1
    try:
        sys.argv = ["snakemake", *arguments]
        cli.main(arguments)
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(bool(code)))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    cli.get_argument_parser()  # loads the plugins
    for name in ("jupyter_client", "nbclient", "pandas", "PIL.Image", "yaml"):  # no code that a copy changes
        import_module(name)
    outputs.figures(), data_code(), report_code()
    for study in STUDIES:  # digests are kept by the content of files, so that a fork sees what changed
        study_code(study)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as printed:
            child = os.fork()
            if not child:
                be_snakemake(*json.loads(line), printed.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            printed.seek(0)
            print(json.dumps([code, printed.read().decode()]), file=answers, flush=True)


if __name__ == "__main__":
    main()
