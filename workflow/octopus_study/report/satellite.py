"""What figures and tables of the satellite's tiles share: which scenes a machine judged, and the picture's parts."""

from __future__ import annotations

import base64
from typing import NamedTuple

import numpy as np

from octopus_study.report.derive.satellite import CHANNELS, RULES, SIDE
from octopus_study.report.labels_edge import SCENES, VARIANTS
from octopus_study.report.numbers import Number, Numbers

__all__ = ["CHANNELS", "RULES", "SIDE"]
STUDY = "satellite"
NO_RUN = "No run of the study satellite is at hand: older results lack it."
NO_TILES = "No run of the study satellite that is shown judged a tile."
ATTRIBUTION = "Contains modified Copernicus Sentinel data 2019, processed by ESA"
GENERATED = "Generated stand-in, no picture of a satellite"
METHODS = ("octopus", "n-launches", "padded", "integral", "opencv", "numpy")


class Picture(NamedTuple):
    """A scene to draw.

    Attributes
    ----------
    scope, scene : str
    synthetic : bool
    thumbnail : ndarray, shape (side, side), uint8
        The scene made small, stretched to all levels; its sides need not be those of the scene.
    tiles : ndarray, shape (tiles, 4), int
        Left, top, right, bottom in pixels of the scene.
    brightness : ndarray, shape (tiles,)
        Mean of each tile as a share of full brightness.
    kept : dict
        Rule -> bool array, shape (tiles,).
    """

    scope: str
    scene: str
    synthetic: bool
    thumbnail: np.ndarray
    tiles: np.ndarray
    brightness: np.ndarray
    kept: dict[str, np.ndarray]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the scene in pixels."""
        return int(self.tiles[:, 2].max()), int(self.tiles[:, 3].max())

    @property
    def areas(self) -> np.ndarray:
        """Pixels of each tile, which bytes are in proportion to."""
        return (self.tiles[:, 2] - self.tiles[:, 0]) * (self.tiles[:, 3] - self.tiles[:, 1])

    @property
    def attribution(self) -> str:
        """What must stand under every picture of the scene."""
        return GENERATED if self.synthetic else ATTRIBUTION


def prefixes(numbers: Numbers, scope: str) -> dict[tuple[str, str], str]:
    """Return the judged (scene, variant) pairs, each with the start of its ids, in a fixed order."""
    pattern = rf"({scope}\.{STUDY}\.([a-z]+)-(\w+)\.n\d+)\.scene\.tiles\.deterministic"
    found = {
        (match[2], match[3]): match[1]
        for match, number in numbers.matching(pattern)
        if number.value == number.value
    }
    pairs = [(scene, variant) for scene in SCENES for variant in VARIANTS]
    return {pair: found[pair] for pair in pairs if pair in found}


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that judged some scene."""
    return [scope for scope in numbers.scopes(STUDY) if prefixes(numbers, scope)]


def timed(numbers: Numbers, scope: str, quantity: str = "end_to_end") -> dict[tuple[str, str], str]:
    """Return those of `prefixes` for which Octopus was timed."""
    found = prefixes(numbers, scope).items()
    return {pair: start for pair, start in found if time_of(numbers, start, "octopus", quantity)}


def time_of(numbers: Numbers, start: str, method: str, quantity: str = "end_to_end") -> Number | None:
    """Return a method's time, on the device where it has one for kernels."""
    layers = ("host",) if quantity == "end_to_end" else ("device", "host")
    return next(
        (found for layer in layers if (found := numbers.get(f"{start}.{method}.{quantity}.{layer}"))), None
    )


def scene_name(numbers: Numbers, pair: tuple[str, str], start: str) -> str:
    """Return scene and number of tiles in words."""
    return f"{SCENES[pair[0]]}, {VARIANTS[pair[1]]}, {start.rpartition('.n')[2]} tiles"


def picture(numbers: Numbers) -> Picture | None:
    """Return the picture to draw: real data before generated ones, the full scene before its window, and this machine's
    before others; None where no run has one."""
    found = numbers.matching(rf"([^.]+)\.{STUDY}\.picture\.(\w+)\.tiles")
    order = {scope: place for place, scope in enumerate(numbers.scopes(STUDY))}
    ranked = sorted(
        found, key=lambda pair: (pair[1].synthetic, pair[0][2] != "full", order.get(pair[0][1], len(order)))
    )
    if not ranked:
        return None
    match, number = ranked[0]
    start = number.id.removesuffix(".tiles")
    levels = np.frombuffer(base64.b64decode(numbers.text(f"{start}.thumbnail")), dtype=np.uint8)
    side = round(len(levels) ** 0.5)
    kept = {rule: numbers.text(f"{start}.kept.{rule}") for rule in RULES}
    return Picture(
        match[1],
        match[2],
        number.synthetic,
        levels[: side * side].reshape(side, side),
        np.array([box.split(",") for box in number.text.split(";")], dtype=int),
        np.array(numbers.text(f"{start}.brightness").split(), dtype=float),
        {rule: np.array(list(flags)) == "1" for rule, flags in kept.items() if flags},
    )
