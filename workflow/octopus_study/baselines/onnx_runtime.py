"""ONNX Runtime itself: one build per environment, and which one was imported."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.names import LIBRARIES

MODULE, NAME = "onnxruntime", "ONNX Runtime"


def builds() -> dict[str, str]:
    """The builds that are installed, by name, with their versions."""
    found = {}
    for package in next(library.packages for library in LIBRARIES if library.name == NAME):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def need_onnxruntime() -> Any:
    """The package.

    Raises
    ------
    Unavailable
        It is missing, or two builds are installed: they share a folder, and what is imported is a mixture.
    """
    found = builds()
    if len(found) > 1:
        both = " and ".join(f"{name} {number}" for name, number in found.items())
        names = " ".join(found)
        raise Unavailable(
            f"{both} are both installed into one folder, so nobody knows which one runs: "
            f"pip uninstall {names}, then install one of them"
        )
    return need(MODULE, NAME, "pip install -e './workflow[baselines]'")


def imported() -> dict[str, Any]:
    """What this process runs, for the provenance: the folder's name, version, providers and builds; empty if it was not
    imported."""
    module = sys.modules.get(MODULE)
    if module is None or not hasattr(module, "get_available_providers"):
        return {}
    facts = {"version": module.__version__, "providers": module.get_available_providers(), "builds": builds()}
    return {MODULE: facts}
