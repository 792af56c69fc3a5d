"""Pages with known text: drawn in a font that matplotlib ships, and how much of them was read rightly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

FONTS = ("DejaVuSans.ttf", "DejaVuSerif.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf")
SIZES = (10, 12, 14, 18, 24, 32, 44, 60)  # of letters, in pixels
WORDS = """a an and are as at boxes by change cost crop detector each find follows for frame from given height image in
is item its kernel launch line made many memory of on one order page pixel read row same scale seven size the this time
to two upright wide width with 0123456789 1998 2026 3.14 42 57% 100"""
TILTS = (-7, -3, 4, 8)  # degrees; a line may also stand upright or on its head
MARGIN, COLUMNS, SMALL = 40, 2, 18  # letters up to so large are set in columns
MISSES = 20  # lines that don't fit before a page is full
WHITE, INK = 255, 0


@dataclass(frozen=True)
class Line:
    """A line as it was drawn: its text, and its corners (4, 2) from the first letter's upper left on, in pixels."""

    text: str
    corners: NDArray[np.float64]

    def distance(self, point: NDArray[np.float64]) -> float:
        """How far a point is from the line's middle, in heights of the line; beyond its ends the distance grows."""
        start, end = self.corners[[0, 3]].mean(0), self.corners[[1, 2]].mean(0)
        along = end - start
        nearest = start + along * np.clip((point - start) @ along / (along @ along), 0, 1)
        return float(np.linalg.norm(point - nearest) / np.linalg.norm(self.corners[3] - self.corners[0]))


@dataclass(frozen=True)
class Page:
    """A page (height, width, 3) of uint8, and its lines."""

    pixels: NDArray[np.uint8]
    lines: tuple[Line, ...]

    def texts(self, boxes: NDArray[np.float64] | None, texts: Sequence[str] | None) -> list[str]:
        """What was read of each line, from left to right, and last what lies on none of them."""
        found: list[list[tuple[float, str]]] = [[] for _ in range(len(self.lines) + 1)]
        for box, text in zip([] if boxes is None else boxes, texts or (), strict=True):
            middle = np.asarray(box, np.float64).mean(0)
            distances = [line.distance(middle) for line in self.lines]
            nearest = int(np.argmin(distances))
            corners = self.lines[nearest].corners
            place = float((middle - corners[0]) @ (corners[1] - corners[0]))
            found[nearest if distances[nearest] < 1 else -1].append((place, text))
        return [" ".join(text for _, text in sorted(parts)) for parts in found]

    def mistakes(self, texts: Sequence[str]) -> int:
        """Characters to insert, delete or change until `texts`, as above, is what was drawn."""
        return sum(
            edits(line, text) for line, text in zip([*(line.text for line in self.lines), ""], texts, strict=True)
        )


def draw(height: int, width: int, seed: int) -> Page:
    """A page of letters of all sizes: single lines, lines in columns, tilted ones, one upright and one on its head."""
    rng = np.random.default_rng(seed)
    canvas, lines = Image.new("L", (width, height), WHITE), list[Line]()
    right = width - 2 * MARGIN  # beside which a line stands upright
    lines += _place(canvas, _text(rng, 24, height // 2), 24, FONTS[0], (width - MARGIN, MARGIN), -90)
    top, turned, misses = MARGIN, False, 0
    while misses < MISSES:
        size, font = int(rng.choice(SIZES)), str(rng.choice(FONTS))
        columns = COLUMNS if size <= SMALL else 1
        tilt = 0 if columns > 1 or rng.random() < 0.6 else int(rng.choice(TILTS))
        if not turned and columns == 1:
            tilt, turned = 180, True
        room = (right - MARGIN * columns) // columns
        made = [_text(rng, size, room if tilt % 180 == 0 else room // 2) for _ in range(columns)]
        deep = int(1.5 * size + abs(np.sin(np.radians(tilt))) * room / 2)
        if top + deep > height - MARGIN:
            misses += 1  # a smaller line may fit
            continue
        for column, text in enumerate(made):
            lines += _place(canvas, text, size, font, (MARGIN + column * (room + MARGIN), top), tilt)
        top += deep
    return Page(np.ascontiguousarray(np.repeat(np.asarray(canvas)[..., None], 3, 2)), tuple(lines))


def _text(rng: np.random.Generator, size: int, room: int) -> str:
    """Words that fit into so many pixels, at least one; a letter is 0.7 of its size wide at most."""
    words = [str(rng.choice(WORDS.split())) for _ in range(int(rng.integers(1, 9)))]
    while len(words) > 1 and 0.7 * size * len(" ".join(words)) > room:
        words.pop()
    return " ".join(words)


def _place(canvas: Image.Image, text: str, size: int, font: str, at: tuple[int, int], degrees: int) -> Iterator[Line]:
    """Draw a line turned against the clock by so many degrees, with its upper left (turned: its box) at a place."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    letters = ImageFont.truetype(str(folder / font), size)
    left, upper, across, below = letters.getbbox(text)
    box = Image.new("L", (int(across - left), int(below - upper)), INK)
    ImageDraw.Draw(box).text((-left, -upper), text, fill=WHITE, font=letters)
    turned = box.rotate(degrees, Image.Resampling.BICUBIC, expand=True)
    half = np.array(box.size) / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    angle = np.radians(-degrees)  # y points down
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    place = (at[0] - (turned.width if degrees == -90 else 0), at[1])
    canvas.paste(INK, place, turned)
    yield Line(text, corners @ turn + np.array(turned.size) / 2 + place)


def edits(expected: str, found: str) -> int:
    """The Levenshtein distance of two texts."""
    row = list(range(len(found) + 1))
    for number, letter in enumerate(expected, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(found, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != other))
    return row[-1]
