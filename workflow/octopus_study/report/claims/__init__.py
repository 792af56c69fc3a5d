"""Published claims, and our own, as rules over numbers."""

from octopus_study.report.claims.build import build_claims, judge_all
from octopus_study.report.claims.judge import judge
from octopus_study.report.claims.judgement import Judgement, read_claims
from octopus_study.report.claims.rules import BOARDS, Claim, load_claims

__all__ = ["BOARDS", "Claim", "Judgement", "build_claims", "judge", "judge_all", "load_claims", "read_claims"]
