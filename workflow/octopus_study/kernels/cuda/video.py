"""A frame of video to one of bytes in RGB, as a program does that converts before it crops: at the speed of a copy."""

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.arguments import Arguments

THREADS = 128
STAGED = 6 * THREADS  # words of two rows
PIXELS = 4  # of a thread in each of two rows: a word of luma, three of red, green and blue
# Full-range BT.601, as `octopus.NV12(matrix="bt601", range="full")`.
RED_V, GREEN_U, GREEN_V, BLUE_U = (np.float32(value) for value in (1.402, -0.344136, -0.714136, 1.772))


@device
def level(value):
    """Round to a byte."""
    return np.uint32(min(max(value, np.float32(0)), np.float32(255)) + np.float32(0.5))


@device
def byte(word, at):
    """One of the four bytes of a word, the lowest first."""
    return np.float32((word >> np.uint32(8 * at)) & np.uint32(255))


def to_rgb(luma, chroma, words, rgb):
    """Two rows of a frame in each row of blocks; `words` is a quarter of its width, whose pitch it is, too. Words of
    the result go through shared memory, so that neighbouring threads write neighbouring words."""
    staged = cuda.shared.array(STAGED, np.uint32)
    lane, first, pair = cuda.threadIdx.x, cuda.blockIdx.x * THREADS, cuda.blockIdx.y
    if first + lane < words:
        colour = chroma[pair * words + first + lane]
        for below in range(2):
            four = luma[(2 * pair + below) * words + first + lane]
            low, middle, high = np.uint32(0), np.uint32(0), np.uint32(0)
            for pixel in range(PIXELS):
                y = byte(four, pixel)
                u = byte(colour, pixel // 2 * 2) - np.float32(128)
                v = byte(colour, pixel // 2 * 2 + 1) - np.float32(128)
                red = level(y + RED_V * v)
                green = level(y + GREEN_U * u + GREEN_V * v)
                blue = level(y + BLUE_U * u)
                # Three bytes a pixel: they end in the first, second or third word.
                if pixel == 0:
                    low = red | green << np.uint32(8) | blue << np.uint32(16)
                elif pixel == 1:
                    low |= red << np.uint32(24)
                    middle = green | blue << np.uint32(8)
                elif pixel == 2:
                    middle |= red << np.uint32(16) | green << np.uint32(24)
                    high = blue
                else:
                    high |= red << np.uint32(8) | green << np.uint32(16) | blue << np.uint32(24)
            at = 3 * (below * THREADS + lane)
            staged[at], staged[at + 1], staged[at + 2] = low, middle, high
    cuda.syncthreads()
    count = 3 * min(THREADS, words - first)
    for below in range(2):
        start = 3 * ((2 * pair + below) * words + first)
        for part in range(3):
            at = part * THREADS + lane
            if at < count:
                rgb[start + at] = staged[3 * below * THREADS + at]


to_rgb.arguments = Arguments.table(  # type: ignore[attr-defined]
    "*uint32 luma chroma", "int32 words", "*uint32 rgb"
)
