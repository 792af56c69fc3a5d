"""The three pictures of the README, drawn from the generated frame, the library itself and the committed references."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import octopus
from octopus import images
from octopus_study.data.synthetic import drone_frame, drone_pool
from octopus_study.report import outputs
from octopus_study.report.charts import style
from octopus_study.report.charts.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE
from octopus_study.report.frame import Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Pixels = NDArray[np.uint8]
COLORS = 96  # of a picture's palette, so that it stays small
PATCH, MERGE = 14, 2
CUTS = ((168, 252), (112, 84), (54, 200), (138, 142))  # heights and widths of the images in the third picture
GAP = 2  # white pixels around a patch


def draw_crops() -> Figure:
    """Draw a frame with its boxes, and all crops of one call."""
    import matplotlib.pyplot as plt

    boxes = drone_pool(24)
    frame = drone_frame(boxes)
    crops = octopus.crop_resize(
        frame, boxes, 112, letterbox=True, pad_value=255, antialias=True, dtype="uint8", layout="NHWC"
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.9), width_ratios=(1.45, 1), layout="constrained")
    left.imshow(frame[::2, ::2])
    for x1, y1, x2, y2 in boxes / 2:
        left.add_patch(plt.Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, color="#ffd000", linewidth=1.2))
    right.imshow(tiled(np.pad(crops, ((0, 0), (6, 6), (6, 6), (0, 0)), constant_values=255), 6))
    titled(left, "One frame, boxes that all differ in size")
    titled(right, f"One launch: a batch {crops.shape}")
    return figure


def draw_ragged() -> Figure:
    """Draw images of different size, and the patch rows that one call makes of them, each with its image's colour."""
    import matplotlib.pyplot as plt

    frame = octopus.crop_resize(
        drone_frame(drone_pool(60)), [[0, 0, 1920, 1080]], (540, 960), antialias=True, dtype="uint8", layout="NHWC"
    )[0]
    corners = ((250, 360), (290, 90), (165, 500), (30, 750))
    pictures = [frame[y : y + h, x : x + w] for (y, x), (h, w) in zip(corners, CUTS, strict=True)]
    rows, grid = images.patch_rows(pictures, [near(cut) for cut in CUTS], scale=255)
    colors = [BLUE, ORANGE, PURPLE, GREEN]
    figure, axes = plt.subplots(
        1, 1 + len(pictures), figsize=(9, 2.6), width_ratios=[*(w for _, w in CUTS), 800], layout="constrained"
    )
    for axis, picture, color in zip(axes, pictures, colors, strict=False):
        axis.imshow(picture)
        axis.set_anchor("C")
        framed(axis, color, f"{picture.shape[0]} \u00d7 {picture.shape[1]}")
    owners = np.repeat(np.arange(len(pictures)), grid.prod(1))
    axes[-1].imshow(tiled(bordered(rows, owners, colors), 30))
    titled(axes[-1], f"One launch: patch rows {rows.shape}, nothing padded")
    return figure


def draw_bound(frame: Frame) -> Figure:
    """Draw the arena's share of the bound, as in the paper."""
    return outputs.figure_of("arena_bound_share", frame)[0]


def near(cut: tuple[int, int]) -> tuple[int, int]:
    """Return the size in whole groups of patches that is nearest to an image's."""
    step = PATCH * MERGE
    return tuple(step * max(1, round(side / step)) for side in cut)


def bordered(rows: NDArray[np.float32], owners: NDArray[np.intp], colors: list[str]) -> Pixels:
    """Return the patches as pictures, each in its image's colour; a row holds channel, frame, height, width."""
    from matplotlib.colors import to_rgb

    patches = rows.reshape(-1, 3, 2, PATCH, PATCH)[:, :, 0].transpose(0, 2, 3, 1)
    side = PATCH + 2 * GAP
    framed = np.empty((len(rows), side, side, 3), np.float32)
    framed[:] = np.array([to_rgb(color) for color in colors])[owners][:, None, None]
    framed[:, GAP:-GAP, GAP:-GAP] = patches
    return (255 * framed.clip(0, 1)).astype(np.uint8)


def tiled(pictures: Pixels, columns: int) -> Pixels:
    """Lay pictures of one size side by side, row after row; what is left is white."""
    count, height, width, channels = pictures.shape
    lines = -(-count // columns)
    sheet = np.full((lines * columns, height, width, channels), 255, np.uint8)
    sheet[:count] = pictures
    grid = sheet.reshape(lines, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(lines * height, columns * width, channels)


def titled(axis: Axes, text: str) -> None:
    """Title a picture, without ticks and frame."""
    axis.set_title(text, fontsize=9, color=BLACK)
    axis.axis("off")


def framed(axis: Axes, color: str, text: str) -> None:
    """Frame a picture in a colour, with its size below."""
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel(text, fontsize=7.5)
    for spine in axis.spines.values():
        spine.set(visible=True, color=color, linewidth=2.5)


def save(figure: Figure, path: Path) -> None:
    """Write a picture with few colours."""
    import matplotlib.pyplot as plt
    from PIL import Image

    canvas: Any = figure.canvas
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(figure)


def draw_pictures(frame: Frame, folder: Path) -> list[Path]:
    """Draw all three; without a run of the arena on a GPU the second one says so."""
    import matplotlib as mpl

    drawn = {"crops": draw_crops, "bound_share": lambda: draw_bound(frame), "ragged_images": draw_ragged}
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in drawn]
    with mpl.rc_context({**style.RC, "figure.dpi": 150}):
        for path, draw in zip(paths, drawn.values(), strict=True):
            save(draw(), path)
    return paths
