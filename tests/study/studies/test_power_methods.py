"""What a batch of study `power` needs, and which of its crops are compared."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus_study.config import load_config
from octopus_study.errors import Unavailable
from octopus_study.studies.context import make_context
from octopus_study.studies.crops import reference_of
from octopus_study.studies.power import methods as power_methods
from octopus_study.studies.power.methods import CHECKED, make_methods

GIB = 2**30
CONFIG = Path(__file__).parents[3] / "config" / "config.yaml"


@pytest.fixture
def context(manifest):
    return make_context("power", load_config(CONFIG, {"device": "cpu"}), manifest)


def with_memory(monkeypatch, context, device: str, host: int, on_device: int):
    """A context of a device, and so much free memory."""
    monkeypatch.setattr(cpu, "free_bytes", lambda: host)
    monkeypatch.setattr(memory, "free_bytes", lambda: on_device)
    return SimpleNamespace(config=context.config, workload=context.workload, device=device)


@pytest.mark.parametrize(
    ("device", "host", "on_device", "lacking"),
    [
        ("cuda", 2 * GIB, 5 * GIB, None),  # a module of eight gigabytes
        ("cuda", 2 * GIB, 4 * GIB, "GPU"),
        ("cuda", GIB // 2, 8 * GIB, "host"),
        ("cpu", 4 * GIB, 0, "host"),  # where the batch lies on the host
        ("cpu", 6 * GIB, 0, None),
    ],
)
def test_five_thousand_objects_fit_or_are_refused(monkeypatch, context, device, host, on_device, lacking) -> None:
    small = with_memory(monkeypatch, context, device, host, on_device)
    with pytest.raises(Unavailable, match=f"on the {lacking}") if lacking else nullcontext():
        power_methods.check_room(small, 5000)


def test_the_methods_are_compared_by_crops_from_all_over_the_batch(context, monkeypatch) -> None:
    monkeypatch.setattr(power_methods, "CHECKED", 3)
    reference = reference_of(context)
    methods, answers = make_methods(context, 8, reference)
    assert [method.name for method in methods] == list(answers)
    assert answers["octopus"] == "same"
    assert all(answers[name].startswith(("same", "different: ")) for name in ("published", "n-launches"))
    assert len(reference._crops) <= 3 < CHECKED
