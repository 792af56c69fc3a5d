"""What a method's answer was, as data: a status, the reason, and how far it was off. Its text is made here, once."""

import re
from enum import StrEnum
from functools import cache
from typing import Self

from octopus_study.units import significant


class MethodStatus(StrEnum):
    """How a method's answer compares with the reference."""

    SAME = "same"
    UNCOMPARED = "n/a"  # it has no result, or nothing to compare it with
    DIFFERENT = "different"
    UNAVAILABLE = "unavailable"  # it gave no number here


class Answer(str):
    """A status with its reason; as text ``different: why``."""

    __slots__ = ("error", "reason", "status")
    status: MethodStatus
    reason: str  # as a reader sees it; empty of what is the same or wasn't compared
    error: float | None  # the largest error of a different answer, where it has a size

    def __new__(cls, status: str, reason: str = "", error: float | None = None) -> Self:
        answer = super().__new__(cls, f"{status}: {reason}" if reason else str(status))
        answer.status, answer.reason, answer.error = MethodStatus(status), reason, error
        return answer

    def __getnewargs__(self) -> tuple[str, str, float | None]:  # type: ignore[override]
        return self.status, self.reason, self.error


SAME = Answer(MethodStatus.SAME)
NO_ANSWER = Answer(MethodStatus.UNCOMPARED)


def different(reason: str, error: float | None = None, allowed: float | None = None) -> Answer:
    """Return the answer of a method whose result is another one; `reason` may be empty where `error` exceeds what is
    `allowed`."""
    if not reason and error is not None and allowed is not None:
        reason = f"by as much as {significant(error)}, more than {significant(allowed)}"
    return Answer(MethodStatus.DIFFERENT, brief(reason), error)


def unavailable(reason: str) -> Answer:
    """Return the answer of a method that gave no number here."""
    return Answer(MethodStatus.UNAVAILABLE, brief(reason))


# Messages of libraries, and what they mean to a reader: rows keep no command, no path and no line of a log.
_CAUSES = tuple(
    (re.compile(pattern, re.DOTALL), meaning)
    for pattern, meaning in (
        (r"^one batch takes [\d.e+-]+ s: (too slow .*?) \(arena\.\w+ = [\d.]+\)", r"\1"),
        (r" \(pip install [^)]*\)$|: pip uninstall .*$|: \[ONNXRuntimeError\].*$", ""),
        (r"^(The memory of \S+:probe was not measured: exit status 1, \S+\.)?Unavailable: ", ""),
        (r"^.*(MemoryError|Failed to allocate memory|bytes .*, [\d,]+ are free).*$", "too little memory was free"),
        (r"^The memory of \S+:probe was not measured: .*$", "the process that measures it failed"),
        (r"^.*NVCV_ERROR.*exceeds 2147483647.*$", "CV-CUDA takes no tensor of 2\u00b3\u00b9 bytes or more"),
        (
            r"^.*numel needs to be smaller than int32_t max.*$",
            "PyTorch pads no batch of 2\u00b3\u00b9 elements or more",
        ),
        (r"^.*previous error during capture.*$", "the capture failed"),
        (r"^.*Cannot copy between CPU and CUDA tensors during.*$", "it copies pageable memory"),
        (r"^on a CPU that is the method without -cpu$", "on a CPU it is the same as without a GPU"),
        (r"^on a CPU that is octopus itself$", "on a CPU that is Octopus itself"),
        (r"\.$", ""),
    )
)


@cache
def brief(reason: str) -> str:
    """Return a reason as a reader sees it: the message of a known cause gives way to what it means."""
    for pattern, meaning in _CAUSES:
        reason = pattern.sub(meaning, reason)
    return reason or "no reason given"


def as_answer(said: str) -> Answer:
    """Return an answer as it is, or the one that a text says, such as ``different: why``."""
    if isinstance(said, Answer):
        return said
    status, _, reason = said.partition(": ")
    kind = MethodStatus(status)
    if kind is MethodStatus.UNAVAILABLE:
        return unavailable(reason)
    return different(reason) if kind is MethodStatus.DIFFERENT else Answer(kind)
