"""A proof, made the only way there is: by a power-on test, here on a bench."""

from __future__ import annotations

from bench import plain_bench

from octopus_study.power.selftest import PassedTest


def proof_of(scope: str) -> PassedTest:
    """Return the proof of a healthy sensor of that scope."""
    bench = plain_bench(counter_mj=0)
    bench.source.scope = scope
    return bench.test().proof()
