"""What the tuner found for this machine, kept between processes."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from octopus import backends
from octopus.arrays.checks import INT32_MAX
from octopus.backends import cache
from octopus.kernels.operations import POINTWISE
from octopus.ragged import blockmap
from octopus.ragged.blockmap import Strategy


def group_of(operation: str) -> str:
    """Operations of a group have the same best strategy: those that wait for memory, and those that compute."""
    return "pointwise" if operation in POINTWISE else "stencil"


def strategy_for(device: str, operation: str) -> Strategy:
    """The strategy that was found the fastest on this device, or the default."""
    found = _stored(device).get(group_of(operation), blockmap.DEFAULT)
    return found if blockmap.is_strategy(found) else blockmap.DEFAULT


def threshold_for(device: str) -> int:
    """Elements per block of `block_metadata` that were found the fastest on this device, or the default."""
    found = _stored(device).get("threshold")
    return found if type(found) is int and 0 < found <= INT32_MAX else blockmap.DEFAULT_THRESHOLD


def keep(device: str, choice: dict[str, str], threshold: int) -> None:
    """Keep a strategy per group of operations for this device and this version of the kernels."""
    cache.store(_file(device), json.dumps(choice | {"threshold": threshold}, indent=1))
    _stored.cache_clear()


def forget(device: str) -> None:
    """Go back to the default."""
    cache.forget(_file(device))
    _stored.cache_clear()


@lru_cache(maxsize=4)
def _stored(device: str) -> dict[str, Any]:
    text = cache.load(_file(device))
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _file(device: str) -> str:
    name = "cpu"
    if device == "cuda":
        name = "".join(c if c.isalnum() else "-" for c in backends.cuda.device.current().name.lower())
    return f"tuned-{name}-{cache.kernel_digest(device)}.json"
