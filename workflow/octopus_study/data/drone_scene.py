"""Draws the sample's frame: a street between buildings and trees, with vehicles and people, as from a drone.

What matters for the measurements is texture at all scales (so that neighbouring source pixels differ and
compression or caching can't cheat) and objects where the boxes are; beauty is a bonus.
"""

import cv2
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

Color = tuple[int, int, int]
Image = NDArray[np.float32]

PAVEMENT, ASPHALT, MARKING, GRASS = (150, 146, 140), (95, 96, 99), (225, 222, 210), (84, 112, 62)
ROOFS: tuple[Color, ...] = ((176, 170, 160), (150, 74, 62), (198, 192, 180), (96, 128, 160))
PAINTS: tuple[Color, ...] = (
    (235, 235, 232),
    (40, 42, 46),
    (150, 30, 34),
    (52, 84, 140),
    (176, 178, 180),
    (196, 160, 52),
)
GLASS = (38, 46, 56)
ROAD = (0.40, 0.60)
"""Left and right edge of the street, as a share of the frame's width."""


def paint_scene(boxes: NDArray[np.int32], frame: tuple[int, int], random: RandomState) -> NDArray[np.uint8]:
    """Paint the scene with one object per box ((N, 4) ``xyxy``) on a frame of that width and height; (H, W, 3) uint8,
    RGB."""
    width, height = frame
    image = np.empty((height, width, 3), dtype=np.float32)
    image[:] = PAVEMENT
    _paint_street(image)
    _paint_buildings(image, random)
    _paint_trees(image, random)
    for box in boxes[np.argsort(boxes[:, 3])]:
        _paint_object(image, box, random)
    return _add_texture(image, random)


def fractal_noise(
    height: int, width: int, random: RandomState, octaves: int, cells: int = 4, roughness: float = 0.5
) -> Image:
    """Fractal noise, (height, width) float32 of mean 0 and deviation 1: a sum of enlarged random grids, each twice as
    fine as the one before. `cells` lie across the coarsest; `roughness` is a grid's amplitude relative to the one
    before: 0.5 is smooth, 0.8 rough."""
    noise = np.zeros((height, width), dtype=np.float32)
    for octave in range(octaves):
        grid = random.standard_normal((cells << octave,) * 2).astype(np.float32)
        noise += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * roughness**octave
    return (noise - noise.mean()) / noise.std()


def _paint_street(image: Image) -> None:
    height, width = image.shape[:2]
    left, right = (int(edge * width) for edge in ROAD)
    image[:, left:right] = ASPHALT
    image[int(0.55 * height) : int(0.68 * height)] = ASPHALT
    for x in (left + 12, right - 18):
        image[:, x : x + 6] = MARKING
    for y in range(0, height, 90):
        image[y : y + 45, (left + right) // 2 : (left + right) // 2 + 8] = MARKING


def _paint_buildings(image: Image, random: RandomState) -> None:
    height, width = image.shape[:2]
    for left, right in ((0, int(0.24 * width)), (int(0.78 * width), width)):
        for top in (0, int(0.30 * height), int(0.72 * height)):
            bottom = top + int(0.24 * height)
            image[top:bottom, left:right] = ROOFS[random.randint(len(ROOFS))]
            _paint_windows(image[top:bottom, left:right], random)


def _paint_windows(facade: Image, random: RandomState) -> None:
    height, width = facade.shape[:2]
    for y in range(18, height - 30, 56):
        for x in range(20, width - 34, 64):
            facade[y : y + 30, x : x + 28] = GLASS
            facade[y + 3 : y + 13, x + 3 : x + 25] += random.randint(10, 70)


def _paint_trees(image: Image, random: RandomState) -> None:
    height, width = image.shape[:2]
    for share in (0.30, 0.36, 0.66, 0.72):
        for y in range(0, height, 120):
            x = int(share * width) + random.randint(-20, 21)
            shade = random.randint(-18, 30)
            for _ in range(14):
                center = (x + random.randint(-55, 56), y + random.randint(-55, 56))
                color = tuple(float(value + shade + random.randint(-16, 17)) for value in GRASS)
                cv2.circle(image, center, int(random.randint(12, 34)), color, -1, cv2.LINE_8)


def _paint_object(image: Image, box: NDArray[np.int32], random: RandomState) -> None:
    left, top, right, bottom = (int(value) for value in box)
    patch = image[top:bottom, left:right]
    patch *= 0.7
    paint = PAINTS[random.randint(len(PAINTS))]
    if right - left >= 0.6 * (bottom - top):
        _paint_vehicle(patch, paint)
    else:
        _paint_person(patch, paint)


def _paint_vehicle(patch: Image, paint: Color) -> None:
    height, width = patch.shape[:2]
    inset_x, inset_y = max(1, width // 12), max(1, height // 12)
    body = patch[inset_y : height - inset_y, inset_x : width - inset_x]
    body[:] = paint
    long_side = 1 if width >= height else 0
    cabin = np.moveaxis(body, long_side, 0)
    length, breadth = cabin.shape[:2]
    for start, end in ((0.22, 0.36), (0.70, 0.82)):
        cabin[int(start * length) : int(end * length), breadth // 8 : breadth - breadth // 8] = GLASS


def _paint_person(patch: Image, paint: Color) -> None:
    height, width = patch.shape[:2]
    center = width // 2
    axes = (max(2, width // 3), max(3, height // 4))
    cv2.ellipse(patch, (center, height // 2), axes, 0, 0, 360, tuple(map(float, paint)), -1, cv2.LINE_8)
    cv2.circle(patch, (center, height // 5), max(2, width // 5), (120.0, 88.0, 70.0), -1, cv2.LINE_8)
    patch[3 * height // 4 :, center - width // 6 : center + width // 6 + 1] = (44, 46, 60)


def _add_texture(image: Image, random: RandomState) -> NDArray[np.uint8]:
    height, width = image.shape[:2]
    image *= (1 + 0.10 * fractal_noise(height, width, random, octaves=8))[..., None]
    image += 6 * random.standard_normal((height, width)).astype(np.float32)[..., None]
    return np.clip(image, 0, 255).astype(np.uint8)
