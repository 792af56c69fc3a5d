"""Runs the conversion of an NV12 frame in Numba's simulator, in a process of its own: it must be chosen before Numba is
imported.

Prints the largest difference to the conversion in float64 as JSON.
"""

import json
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

from octopus_study.baselines.native_methods import from_nv12, to_nv12
from octopus_study.kernels.cuda import video

HEIGHT, WIDTH = 4, 4 * (video.THREADS + 3)  # a second block of three threads


def main():
    frame = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    nv12, rgb = to_nv12(frame), np.zeros(frame.shape, np.uint8)
    luma, chroma = nv12[:HEIGHT], nv12[HEIGHT:]
    words = [np.frombuffer(plane, np.uint32) for plane in (luma.copy(), chroma.copy())]
    cuda.jit(video.to_rgb)[(2, HEIGHT // 2), video.THREADS](
        *words, WIDTH // video.PIXELS, rgb.reshape(-1).view(np.uint32)
    )
    print(json.dumps(float(np.abs(rgb - from_nv12(nv12)).max())))


if __name__ == "__main__":
    main()
