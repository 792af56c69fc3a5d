"""Images of different size in torch's `DataLoader`: a batch is one tensor, which is sent, pinned and uploaded at once.

>>> loader = DataLoader(folder, 32, num_workers=4, collate_fn=ragged, pin_memory=True)  # doctest: +SKIP
>>> for batch in loader:  # doctest: +SKIP
...     pixels = octopus.images.resize(batch.to("cuda", non_blocking=True), 224)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from octopus.errors import InputError
from octopus.images.sources import sources_of
from octopus.ragged.batch import RaggedBatch


def ragged(images: Sequence[Any], source: str | None = None) -> RaggedBatch:
    """A `collate_fn` for images of different size, which copies each image once.

    From a worker the batch reaches the loader's process as one piece of shared memory. It has `pin_memory()`, which the
    loader calls, and `to(device)`, and `octopus.images` takes it as it is, on either side.

    Parameters
    ----------
    images : sequence of arrays
        Images (H, W, C), (C, H, W) or (H, W) on the host, as of `octopus.images.resize`: uint8, uint16 or float32, all
        of one dtype, and of as many channels: 1, 3 or 4. NumPy or torch, whatever their strides.
    source : {"HWC", "CHW"}, optional
        As of `octopus.images.resize`: for images of so few pixels that channels can't be told from rows or columns.

    Returns
    -------
    RaggedBatch
        Items in the order and of the shapes of the images; `values` is a tensor of torch on the host.

    Raises
    ------
    InputError
        For no images, or such as `octopus.images` wouldn't take; names the first that is wrong. For images on a GPU,
        and for (H, W) beside (H, W, C).
    """
    import torch

    sources = sources_of(images, source)
    if sources.model.device != "cpu":
        raise InputError(
            "images of a DataLoader must lie on the host, found a GPU's; move the batch when it comes: "
            "batch.to('cuda', non_blocking=True)"
        )
    shapes = [tuple(image.shape) for image in images]
    odd = next((shape for shape in shapes if len(shape) != len(shapes[0])), None)
    if odd:
        raise InputError(
            f"images of a batch all have two dimensions or all three, found {shapes[0]} beside {odd}; add "
            "an axis of one channel"
        )
    ends = sources.geometry.shapes.prod(axis=1).cumsum()
    # Not in shared memory at once: torch moves a batch there on a thread beside the one that decodes the next.
    values = torch.empty(int(ends[-1]), dtype=getattr(torch, sources.geometry.dtype))
    begins = np.concatenate([[0], ends[:-1]]) * sources.geometry.item
    sources.copy_to(values.numpy().view(np.uint8), begins)
    return RaggedBatch.from_arrays(values, shapes)


__all__ = ["ragged"]
