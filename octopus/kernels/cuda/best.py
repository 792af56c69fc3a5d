"""The largest of each row of float32 and where it is: of a text recogniser's scores all that its decoder reads.

A block reads one row, thread beside thread, and meets in shared memory. Of equal values the first one counts, as in
NumPy, however the threads are scheduled.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda
from octopus.kernels.arguments import BEST

THREADS = 256


def build() -> Callable:
    """The kernel: row `blockIdx.x` of `count` values, from which it writes one place and one value."""

    def best_kernel(scores, count, places, values):
        largest = cuda.shared.array(THREADS, np.float32)
        at = cuda.shared.array(THREADS, np.int32)
        thread, row = np.int32(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        value, place, column = np.float32(-np.inf), np.int32(count), thread
        while column < count:
            score = scores[row * count + column]
            if score > value:
                value, place = score, column
            column = np.int32(column + THREADS)
        largest[thread], at[thread] = value, place
        step = np.int32(THREADS // 2)
        while step > 0:
            cuda.syncthreads()
            if thread < step:
                other = largest[thread + step]
                if other > largest[thread] or (other == largest[thread] and at[thread + step] < at[thread]):
                    largest[thread], at[thread] = other, at[thread + step]
            step = np.int32(step >> 1)
        if thread == 0:
            places[row], values[row] = at[0], largest[0]

    best_kernel.arguments = BEST
    return best_kernel
