"""`python -m octopus` is the command `octopus`."""

import sys

from octopus.cli import main

sys.exit(main())
