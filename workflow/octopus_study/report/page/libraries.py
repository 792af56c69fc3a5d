"""The JavaScript of the page: Vega as Snakemake brings it for its own report, DataTables as itables brings it.

Nothing is fetched. Where a package has its files elsewhere one day, the page has its static parts alone.
"""

import logging
from importlib.util import find_spec
from pathlib import Path

_FILES = {
    "vega": ("snakemake", "assets/data/vega/vega.js"),
    "vega-lite": ("snakemake", "assets/data/vega-lite/vega-lite.js"),
    "datatables": ("itables", "html/dt_bundle.js"),
    "datatables-style": ("itables", "html/dt_bundle.css"),
}
_LICENCES = ("assets/data/vega/LICENSE", "assets/data/vega-lite/LICENSE")


def libraries() -> dict[str, str]:
    """Return the source of each library by name; nothing at all where one is missing."""
    try:
        return {name: _path(*place).read_text(encoding="utf-8") for name, place in _FILES.items()}
    except OSError as error:
        logging.getLogger(__name__).warning("The results page has no charts and no sorting: %s", error)
        return {}


def licences() -> list[str]:
    """Return the licences that must go with the libraries; that of DataTables is in its source."""
    paths = (_path("snakemake", file) for file in _LICENCES)
    return [path.read_text(encoding="utf-8") for path in paths if path.is_file()]


def _path(package: str, file: str) -> Path:
    found = find_spec(package)  # not imported: its files are all that is needed
    if found is None or not found.origin:
        raise FileNotFoundError(f"the package {package} is not installed")
    return Path(found.origin).parent / file
