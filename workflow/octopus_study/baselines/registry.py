"""The arena's methods by name. Whoever imports this depends on all baselines; each is imported when it is made."""

from importlib import import_module

from octopus.errors import InputError
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.names import arena_methods


def make(name: str, job: CropJob) -> CropMethod:
    """The method of that name; `InputError` where the arena has none, `Unavailable` where it can't run here."""
    targets = arena_methods()
    if name not in targets:
        raise InputError(f"there is no method {name!r}; there are {', '.join(targets)}")
    module, _, kind = targets[name].partition(":")
    return getattr(import_module(f"octopus_study.baselines.{module}"), kind)(job)
