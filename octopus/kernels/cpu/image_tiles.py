"""What a launch of `kernels.cuda.image_tiles` must be told of a table of images, in one pass over its records.

Sums and bounds over a few hundred records take the machine a few microseconds, and NumPy sixty.
"""

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import compiled, pointer
from octopus.kernels.images import COLUMNS, FIRST_TILE, HEIGHT, LEFT, PIXEL_STEP, ROW_STEP, ROWS, TOP, WIDTH, WORDS

BEHIND = 128  # rows; the kernel works out addresses of groups of rows behind the last, of a few, in int32
LONGS = WORDS // 2  # of 64 bits in a record of `kernels.images.IMAGE`
# What `survey` writes: images, whether the kernel knows their memory and place, the widest result, and source pixels
# under a band of rows and bytes under one of columns.
IMAGES, KNOWN, WIDEST, DOWN, ACROSS = range(5)


@compiled
def _reach(size, count, lines, widens, support):
    """Source pixels but one under the windows of `lines` lines of an axis, at most."""
    counts = max(count, np.int64(1))
    scale = np.float64(size) / np.float64(counts)
    spread = max(scale, 1.0) if widens else 1.0
    wide = np.float64(min(counts, lines) - 1) * scale + 2.0 * support * spread
    return min(np.int64(np.ceil(wide)), size - 1)


def build_survey() -> Callable[..., None]:
    """The kernel that looks at all images of a table, as `images.cuda` needs it. `counter, blocks (1), table, records,
    height and width of a batch's items (0: each has its own), lines of a band, whether the filter widens, half its
    width, channels, whether a warp makes them all at once, most bytes of a pixel step, most bytes of an image, answer
    (5,) int64, source pixels for each of the result's (records + 2,) float64`; those of a record without an image are
    0, and the last two are the least and the most of images. Channels that are made at once have weights for pixels,
    not for bytes, and are planes or the first bytes of pixels of 3 or 4."""

    def survey(arguments):
        table, words = pointer(arguments[2], np.int64), pointer(arguments[2], np.int32)
        count, item_height, item_width = arguments[3], arguments[4], arguments[5]
        lines, widens, support, channels = arguments[6], arguments[7], np.float64(arguments[8]), arguments[9]
        fused, most_step, most_span = arguments[10], arguments[11], arguments[12]
        answer, reads = pointer(arguments[13], np.int64), pointer(arguments[14], np.float64)
        least, most = np.inf, 0.0
        images, known, widest, down, across = np.int64(0), np.int64(1), np.int64(0), np.int64(0), np.int64(0)
        for record in range(count):
            reads[record] = 0.0
            if table[record * LONGS] == 0:
                continue
            images += 1
            at = record * WORDS
            row_step, pixel_step = np.int64(words[at + ROW_STEP]), np.int64(words[at + PIXEL_STEP])
            height, width = np.int64(words[at + HEIGHT]), np.int64(words[at + WIDTH])
            rows, columns = np.int64(words[at + ROWS]), np.int64(words[at + COLUMNS])
            top, left = np.int64(words[at + TOP]), np.int64(words[at + LEFT])
            span = row_step * (height + BEHIND) + pixel_step * width
            span += abs(table[record * LONGS + 2]) * (channels - 1)
            if pixel_step < 1 or pixel_step > most_step or row_step < 0 or span >= most_span:
                known = np.int64(0)
            if fused and pixel_step > 1 and (pixel_step == 2 or table[record * LONGS + 2] != 1):
                known = np.int64(0)
            if top < 0 or left < 0 or rows - top < item_height or columns - left < item_width:
                known = np.int64(0)
            widest = max(widest, columns)
            down = max(down, _reach(height, rows, lines, widens, support))
            across = max(across, _reach(width, columns, lines, widens, support) * (1 if fused else pixel_step))
            reads[record] = np.float64(height) * width / max(rows * columns, np.int64(1))
            least, most = min(least, reads[record]), max(most, reads[record])
        reads[count], reads[count + 1] = least, most
        answer[IMAGES], answer[KNOWN], answer[WIDEST], answer[DOWN], answer[ACROSS] = (
            images, known, widest, down, across,
        )  # fmt: skip

    return survey


def build_number() -> Callable[..., None]:
    """The kernel that counts the tiles of a table. `counter, blocks (1), table, records, height and width of a batch's
    items (0: each has its own), height and width of a tile, whether to write the records' first tiles, answer (1,)
    int64`."""

    def number(arguments):
        table, words = pointer(arguments[2], np.int64), pointer(arguments[2], np.int32)
        count, item_height, item_width, high, wide = (
            arguments[3], arguments[4], arguments[5], arguments[6], arguments[7],
        )  # fmt: skip
        writes, answer = arguments[8], pointer(arguments[9], np.int64)
        first = np.int64(0)
        for record in range(count):
            at = record * WORDS
            if writes:
                words[at + FIRST_TILE] = first
            if table[record * LONGS] != 0:
                height = item_height if item_height else np.int64(words[at + ROWS])
                width = item_width if item_width else np.int64(words[at + COLUMNS])
                first += ((height + high - 1) // high) * ((width + wide - 1) // wide)
        answer[0] = first

    return number
