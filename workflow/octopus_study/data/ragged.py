"""Sizes of ragged batches: those of the studies on mapping, and the published mixes of images and sequences."""

import numpy as np
from numpy.typing import NDArray

from octopus.errors import InputError

LONG_SIDE = 500  # of a photograph at the usual size of a photo site
SHORT_SIDES = (375, 333, 334, 281, 500, 357)  # and what the usual ratios leave of the other
SHORT_SHARES = (0.45, 0.25, 0.13, 0.05, 0.04, 0.08)
PORTRAIT = 0.3  # of the photographs
LARGE_IMAGES = {"4k": (2160, 3840), "8k": (4320, 7680)}
MIXES = ("photos-500", "photos-500-4k", "photos-500-8k", "photos-1000", "photos-1000-8k")
# items, and the published number of elements in all
SEQUENCES = {
    "nlp-1k": (1_000, 60_000),
    "nlp-10k": (10_000, 595_000),
    "nlp-extreme-1k": (1_000, 150_000),
    "vision-patches-500": (500, 1_700_000),
    "vision-extreme-500": (500, 3_400_000),
}
EXTREME = 0.05  # share of long items in an extreme mix
EXTREME_LENGTH = 20  # times as long as the others


def mapping_shapes(distribution: str, count: int, pool: NDArray[np.integer], seed: int) -> NDArray[np.int64]:
    """Height and width, (count, 2) int64, of images for the study of mappings: sides of 4 to 16 (`tiny`), those of
    boxes drawn from the `pool` (`visdrone`), 100 to 512 pixels (`large`), or all of 64 (`even`)."""
    random = np.random.RandomState(seed)
    if distribution == "visdrone":
        boxes = pool[random.randint(0, len(pool), count)]
        return np.stack([boxes[:, 3] - boxes[:, 1], boxes[:, 2] - boxes[:, 0]], axis=1).astype(np.int64)
    limits = {"tiny": (4, 17), "large": (100, 513), "even": (64, 65)}
    if distribution not in limits:
        raise InputError(f"there is no distribution {distribution!r}; use tiny, visdrone, large or even")
    return random.randint(*limits[distribution], (count, 2)).astype(np.int64)


def photo_shapes(mix: str, seed: int, long_side: int = LONG_SIDE) -> NDArray[np.int64]:
    """Draw height and width of photographs, (N, 2) int64, with one 4K or 8K image more where the mix says so.

    The published mixes are photographs of Flickr8k, 89.4 million pixels in 500 images; the list of files is not
    published, so these sizes are drawn: as many images and, within a few per cent, as many pixels. `long_side` makes
    the usual ones smaller, for a quick look.
    """
    if mix not in MIXES:
        raise InputError(f"there is no mix {mix!r}; use one of {', '.join(MIXES)}")
    _, number, *large = mix.split("-")
    random = np.random.RandomState(seed)
    short = random.choice(SHORT_SIDES, int(number), p=SHORT_SHARES)
    portrait = random.random_sample(int(number)) < PORTRAIT
    shapes = np.stack([np.where(portrait, LONG_SIDE, short), np.where(portrait, short, LONG_SIDE)], axis=1)
    shapes = np.maximum(shapes * long_side // LONG_SIDE, 1)
    return np.concatenate([shapes, *[[LARGE_IMAGES[name]] for name in large]]).astype(np.int64)


def sequence_lengths(mix: str, seed: int) -> NDArray[np.int64]:
    """Lengths of a published mix of sequences, (N,) int64, that add up to exactly its elements. Lengths are log-normal;
    in an extreme mix one in twenty is twenty times as long."""
    if mix not in SEQUENCES:
        raise InputError(f"there is no mix {mix!r}; use one of {', '.join(SEQUENCES)}")
    count, total = SEQUENCES[mix]
    random = np.random.RandomState(seed)
    weights = random.lognormal(0.0, 0.5, count)
    if "extreme" in mix:
        weights[random.random_sample(count) < EXTREME] *= EXTREME_LENGTH
    lengths = np.maximum((weights / weights.sum() * total).astype(np.int64), 1)
    missing = total - int(lengths.sum())
    lengths[np.argsort(lengths)[::-1][: abs(missing)]] += np.sign(missing)
    return lengths
