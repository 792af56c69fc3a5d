"""Draws the sample's frame: a street between houses and grass, with a vehicle in each box, as from a drone.

What matters for the measurements is texture at all scales (so that neighbouring source pixels differ and
compression or caching can't cheat) and objects where the boxes are.
"""

import cv2
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

# From left to right: where a strip begins, as a share of the frame's width, and its colour.
STRIPS = (
    (0.0, (84, 112, 62)),
    (0.22, (150, 146, 140)),
    (0.4, (95, 96, 99)),
    (0.6, (150, 146, 140)),
    (0.78, (170, 60, 48)),
)
MARKING = (225, 222, 210)
PAINTS = ((235, 235, 232), (40, 42, 46), (150, 30, 34), (52, 84, 140), (176, 178, 180), (196, 160, 52))
GLASS = (38, 46, 56)
PANES = ((0.22, 0.36), (0.70, 0.82))  # where the glass of a vehicle is, along its longer side


def paint_scene(boxes: NDArray[np.int32], frame: tuple[int, int], random: RandomState) -> NDArray[np.uint8]:
    """Paint the scene with one vehicle per box ((N, 4) ``xyxy``) on a frame of that width and height; (H, W, 3) uint8,
    RGB."""
    width, height = frame
    image = np.empty((height, width, 3), np.float32)
    for start, colour in STRIPS:
        image[:, int(start * width) :] = colour
    middle = width // 2
    for top in range(0, height, 90):
        image[top : top + 45, middle - 4 : middle + 4] = MARKING
    for box in boxes[np.argsort(boxes[:, 3])]:
        _paint_vehicle(image, box.tolist(), PAINTS[random.randint(len(PAINTS))])
    image *= (1 + 0.10 * fractal_noise(height, width, random, octaves=8))[..., None]
    image += 6 * random.standard_normal((height, width)).astype(np.float32)[..., None]
    return np.clip(image, 0, 255).astype(np.uint8)


def _paint_vehicle(image: NDArray[np.float32], box: list[int], paint: tuple[int, ...]) -> None:
    """Its shadow, its body, and the panes across it."""
    left, top, right, bottom = box
    inset_x, inset_y = max(1, (right - left) // 12), max(1, (bottom - top) // 12)
    image[top:bottom, left:right] *= 0.7
    body = image[top + inset_y : bottom - inset_y, left + inset_x : right - inset_x]
    body[:] = paint
    along = np.moveaxis(body, int(right - left >= bottom - top), 0)
    length, breadth = along.shape[:2]
    for start, end in PANES:
        along[int(start * length) : int(end * length), breadth // 8 : breadth - breadth // 8] = GLASS


def fractal_noise(
    height: int, width: int, random: RandomState, octaves: int, cells: int = 4, roughness: float = 0.5
) -> NDArray[np.float32]:
    """Fractal noise, (height, width) float32 of mean 0 and deviation 1: a sum of enlarged random grids, each twice as
    fine as the one before. `cells` lie across the coarsest; `roughness` is a grid's amplitude relative to the one
    before: 0.5 is smooth, 0.8 rough."""
    noise = np.zeros((height, width), dtype=np.float32)
    for octave in range(octaves):
        grid = random.standard_normal((cells << octave,) * 2).astype(np.float32)
        noise += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * roughness**octave
    return (noise - noise.mean()) / noise.std()
