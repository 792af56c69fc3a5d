"""Published claims, and our own, as rules over numbers.

``formula``, ``units``
    Arithmetic over ids of numbers.
``rules``
    The claims of ``config/claims.yaml``, and what each rule allows on a machine.
``outcome``
    How a number with its interval stands to the limits.
``judge``
    The verdicts, ``claims.csv``.
"""

from octopus_study.report.claims.judge import Judgement, build_claims, judge, read_claims
from octopus_study.report.claims.rules import BOARDS, Claim, load_claims

__all__ = ["BOARDS", "Claim", "Judgement", "build_claims", "judge", "load_claims", "read_claims"]
