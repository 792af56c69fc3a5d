"""The studies of ragged batches, run quickly on the CPU: who takes part, what they answer, and what is only counted."""

import numpy as np
import pytest

from octopus.ragged import blockmap
from octopus.ragged.blockmap import STRATEGIES
from octopus_study.baselines import ragged_methods
from octopus_study.baselines.ragged_job import SCALAR, RaggedJob
from octopus_study.data.ragged import sequence_lengths
from octopus_study.measure import read_rows
from octopus_study.studies.mapping.study import METHODS
from octopus_study.studies.sequences.methods import PUBLISHED_THRESHOLD


def test_bytes_of_the_maps_follow_from_elements_and_items(runs):
    rows = read_rows(runs["mapping"])
    assert set(rows.dataset[rows.workload.str.startswith("tiny")]) == {"synthetic"}
    rows = rows[(rows.workload == "visdrone") & (rows.layer == "deterministic")]
    value = {(row.method, row.quantity): row.value for row in rows.itertuples()}
    offsets = 4 * (200 + 1)
    assert value["octopus", "map_bytes"] == value["thread-search", "map_bytes"] == offsets
    assert value["lookup", "map_bytes"] == 4 * value["batch", "elements"] + offsets
    assert (value["block-metadata", "map_bytes"] - offsets) % 12 == 0


def test_an_answer_with_other_bits_or_none_is_told():
    job = RaggedJob("multiply", np.array([[3, 4], [5, 6]]), "float32", "cpu", 1)
    right = job.kernel("block_search")

    def nearly():
        right()
        job.out[7] = np.nextafter(job.out[7], np.float32(9))

    runs = {"right": right, "nearly": nearly, "lazy": lambda: None}
    answers = job.check([job.method(name, run) for name, run in runs.items()])
    assert answers["right"] == "same"
    assert answers["nearly"].startswith("different: not the bits")
    assert answers["lazy"].startswith("different: ")


def test_published_block_metadata_are_those_of_the_library_in_twenty_bytes_per_block():
    threshold = blockmap.PUBLISHED_THRESHOLD
    offsets = blockmap.offsets_of(np.array([[3], [0], [threshold], [threshold + 1], [1]]))
    made, right = (ragged_methods.build_of(name, offsets)() for name in ("block-metadata-published", "block-metadata"))
    for name, array in right.arrays.items():
        assert np.array_equal(made.arrays[name], array) and made.arrays[name].dtype == array.dtype
    assert made.ends.tolist() == [*made.starts[1:], offsets[-1]]
    assert made.nbytes == 20 * right.blocks + 4 * len(offsets) and made.threshold == threshold


def test_published_gains_in_memory_follow_from_twenty_bytes_and_the_thresholds():
    """The lengths are drawn: those of the patches differ from the published ones."""
    printed = (("nlp-1k", 12), ("nlp-10k", 12), ("nlp-extreme-1k", 28), ("vision-patches-500", 205))
    for mix, gain in (*printed, ("vision-extreme-500", 186)):
        offsets = blockmap.offsets_of(sequence_lengths(mix, 42)[:, None])
        made = ragged_methods.published_records(offsets, PUBLISHED_THRESHOLD)
        assert 4 * offsets[-1] / (made.nbytes - 4 * len(offsets)) == pytest.approx(gain, rel=0.15)


def test_each_search_has_block_metadata_of_its_width_beside_it():
    widths = {
        (strategy, scalar)
        for strategy, threshold, scalar in METHODS.values()
        if threshold in (None, blockmap.PUBLISHED_THRESHOLD)
    }
    both = {(strategy, scalar) for strategy in ("thread_search", "block_metadata") for scalar in (False, True)}
    assert both <= widths and SCALAR == (1, 1, 256)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_image_of_33_million_pixels(strategy):
    job = RaggedJob("blur3x3", np.array([[2, 3], [4320, 7680], [1, 1]]), "uint8", "cpu", 1)
    job.kernel(strategy)()
    source, out = (array[6:-1].reshape(4320, 7680) for array in (job.values, job.out))
    padded = np.pad(source, 1, mode="edge").astype(np.float64)
    for row in (0, 1, 2159, 4318, 4319):
        sums = sum(padded[row + y, x : x + 7680] for y in range(3) for x in range(3))
        assert np.array_equal(out[row], np.rint(sums / 9))
