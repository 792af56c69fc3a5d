"""What figures and tables of two models on one GPU share: ways, models, and what a machine lacks."""

from __future__ import annotations

from octopus_study.report import companions
from octopus_study.report.derive.concurrency import ALONE, BASE
from octopus_study.report.labels import CONCURRENCY_ARMS, CONCURRENCY_MODELS, CROPS_BESIDE
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import reason

__all__ = ["ALONE", "BASE"]
STUDY = "concurrency"
NO_RUN = "No run of the study concurrency is at hand: older results lack it."
NO_TIMES = "No run of the study concurrency that is shown ran two models."
TOGETHER = tuple(arm for arm in CONCURRENCY_ARMS if arm not in ALONE)
MODELS = tuple(CONCURRENCY_MODELS)


def start(scope: str) -> str:
    """Return the start of the ids of two models."""
    return f"{scope}.{STUDY}.two-models.n2"


def makespan(numbers: Numbers, scope: str, arm: str) -> Number | None:
    """Return the time until both results of a frame pair are there."""
    return numbers.get(f"{start(scope)}.{arm}.makespan.host")


def arms(numbers: Numbers, scope: str) -> list[str]:
    """Return the ways that a machine timed, each model alone first."""
    return [arm for arm in CONCURRENCY_ARMS if makespan(numbers, scope, arm)]


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that ran both models in some way."""
    return [scope for scope in numbers.scopes(STUDY) if set(arms(numbers, scope)) & set(TOGETHER)]


def derived(scope: str, arm: str, name: str) -> str:
    """Return the id of what is derived from a way's makespans."""
    return f"{scope}.{STUDY}.arms.{arm}.{name}"


def latency(numbers: Numbers, scope: str, model: str, arm: str, name: str) -> Number | None:
    """Return a percentile of what a model's result takes."""
    return numbers.get(f"{scope}.{STUDY}.latency.{model}.{arm}.{name}")


def late(numbers: Numbers, scope: str, model: str, arm: str) -> Number | None:
    """Return the 99th percentile of what a model's result takes, or the longest where there are too few iterations."""
    known = (latency(numbers, scope, model, arm, name) for name in ("p99", "max"))
    return next((number for number in known if number), None)


def gaps(numbers: Numbers, scope: str) -> dict[str, str]:
    """Return the ways without a makespan on a machine, with the reason that their rows give."""
    texts = {arm: numbers.text(f"{start(scope)}.{arm}.makespan.host") for arm in CONCURRENCY_ARMS}
    return {arm: reason(text) for arm, text in texts.items() if text.startswith("unavailable")}


def crops_start(numbers: Numbers, scope: str) -> str:
    """Return the start of the ids of crops beside a model, with their number; empty where there are none."""
    pattern = rf"({scope}\.{STUDY}\.crops-beside-model\.n\d+)\.[\w-]+\.latency_model\.host"
    found = [match[1] for match, number in numbers.matching(pattern) if number.value == number.value]
    return found[0] if found else ""


def beside(numbers: Numbers, scope: str, quantity: str) -> list[str]:
    """Return the ways to crop beside a model in which something was timed."""
    first = crops_start(numbers, scope)
    return [name for name in CROPS_BESIDE if first and numbers.get(f"{first}.{name}.{quantity}.host")]


def no_times(numbers: Numbers) -> str:
    """Say that nothing was timed, and why."""
    return companions.nothing(numbers, STUDY, NO_TIMES)


def footer(numbers: Numbers) -> str:
    """Say what a figure rests on."""
    return companions.footer(numbers, STUDY)
