"""The captions of tables and of figures by name, which are data: ``captions.toml``."""

import tomllib
from pathlib import Path


def _read(kind: str) -> dict[str, str]:
    texts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[kind]
    return {name: text.replace("\n", " ") for name, text in texts.items()}


TABLES, FIGURES = _read("tables"), _read("figures")
