"""The tuner: its probes' lookups are live, its choice follows from its evidence and is kept per device."""

import numpy as np
import pytest

from octopus import RaggedBatch
from octopus.ragged import blockmap, ops, tuner
from octopus.ragged.blockmap import GROUPS, STRATEGIES
from octopus.ragged.plan import RaggedPlan
from octopus.ragged.tuner import Evidence


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    blockmap.tuned.cache_clear()
    yield
    blockmap.tuned.cache_clear()


def evidence(times):
    return [Evidence("pointwise", name, 0.0, time) for name, time in times.items()]


def test_every_strategy_is_probed_and_the_choice_follows_from_the_evidence():
    found = tuner.tune("cpu")
    assert set(found.choice) == set(GROUPS)
    for group in GROUPS:
        rows = [row for row in found.evidence if row.group == group]
        assert {row.strategy for row in rows} == set(STRATEGIES)
        chosen = min(row.cost(1) for row in rows if row.strategy == found.choice[group])
        assert chosen <= tuner.AS_GOOD * min(row.cost(1) for row in rows)
    assert repr(found).count("<- chosen") == len(found.choice)


def test_the_fastest_wins_and_of_equals_the_one_that_needs_least():
    times = {"lookup": 1.0, "thread_search": 3.0, "block_metadata": 1.5, "block_search": 2.0}
    assert tuner._best(evidence(times), "pointwise", 1).strategy == "lookup"
    equal = dict.fromkeys(STRATEGIES, 1.0) | {"lookup": 0.99}
    assert tuner._best(evidence(equal), "pointwise", 1).strategy == "block_search"


def test_what_must_be_built_counts_less_the_more_often_a_batch_is_used():
    rows = [Evidence("stencil", "lookup", 10.0, 1.0), Evidence("stencil", "block_search", 0.0, 1.5)]
    assert [tuner._best(rows, "stencil", uses).strategy for uses in (1, 100)] == ["block_search", "lookup"]


def test_a_probe_uses_the_item_of_every_element():
    batch = tuner.probe_batch(tuner._boxes(160_000), 160_000)
    assert 100_000 < batch.size <= 160_000
    gains = np.linspace(0.5, 1.5, len(batch), dtype=np.float32)
    right = batch.values * np.repeat(gains, np.diff(batch.offsets))
    assert np.array_equal(ops.multiply(batch, gains, device="cpu").values, right)
    assert len(set(map(tuple, batch.shapes.tolist()))) > len(batch) / 2


def test_the_choice_is_kept_and_used_by_auto():
    batch = RaggedBatch.from_offsets(np.ones(4, np.float32), [0, 4])
    assert RaggedPlan("multiply", batch, device="cpu").strategy == "block_search"
    blockmap.store("cpu", {"pointwise_small": "lookup"})
    blockmap.store("cpu", {"pointwise": "thread_search"})
    assert RaggedPlan("multiply", batch, device="cpu").strategy == "lookup", "4 elements are a small item"
    large = RaggedBatch.from_offsets(np.ones(blockmap.SMALL, np.float32), [0, blockmap.SMALL])
    assert RaggedPlan("multiply", large, device="cpu").strategy == "thread_search"
    assert blockmap.tuned("cpu")["stencil"] == "block_search"


@pytest.mark.parametrize(("sizes", "groups"), [
    ([30, 900], {"pointwise_small"}), ([[40, 50]], {"pointwise", "stencil"}),
])  # fmt: skip
def test_the_sizes_of_a_users_batch_are_what_is_probed(sizes, groups):
    found = tuner.tune("cpu", sizes=sizes)
    assert set(found.choice) == groups and {row.group for row in found.evidence} == groups


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"pointwise": "magic", "threshold": -1}', '{"pointwise": 4096, "tiny": "lookup"}']
)
def test_a_damaged_file_is_no_choice(text):
    blockmap.store("cpu", {})
    next(blockmap.cache.cache_dir().glob("tuned-*")).write_text(text)
    blockmap.tuned.cache_clear()
    assert blockmap.tuned("cpu") == dict.fromkeys(GROUPS, "block_search")
