"""The first crop of a process. `machine` runs this file in fresh ones, so that nothing of the artifact is imported."""

from __future__ import annotations

import sys
import time


def main(device: str) -> None:
    """Print the milliseconds from `import octopus` to the first result on the host."""
    started = time.perf_counter()
    import numpy as np

    import octopus

    frame = np.zeros((1080, 1920, 3), np.uint8)
    octopus.crop_resize(frame, [[10, 10, 60, 90]], mean=127.5, std=127.5, device=device)
    sys.stdout.write(f"{(time.perf_counter() - started) * 1e3}\n")


if __name__ == "__main__":
    main(sys.argv[1])
