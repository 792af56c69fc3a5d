#!/bin/sh
# Snakemake runs this in the repository, with the new environment's Python. A conda file can't ask for hashes and for
# projects that are installed in place.
set -eu
python workflow/scripts/install.py requirements.lock
