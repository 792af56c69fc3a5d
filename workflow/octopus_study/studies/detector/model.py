"""A detector of torchvision, cut at the seams that are timed: input tensor, network, detections.

Its weights are random: none are on board, and what a detector is worth does not matter where the question is whether
two methods to prepare its input end in the same detections. Random weights as torchvision draws them answer nothing at
all to any image, though, since the signal dies within a few layers. So the batch normalisation takes its statistics
from example images, and the score threshold lies where the first of them has a fixed number of candidates. From there
on it is an ordinary detector: softmax over classes, best candidates, suppression of overlapping boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import need, need_torch

NAME = "ssdlite320_mobilenet_v3_large"
INSTALL = "pip install -e './workflow[models]'"
CLASSES = 10  # as many as VisDrone has
CANDIDATES = 60  # boxes of the first example above the score threshold, before overlapping ones are removed
REPRODUCIBLE = {"benchmark": False, "deterministic": True, "allow_tf32": False}


class Detections(NamedTuple):
    """What a detector gives for one frame."""

    # (N, 4) float32, `x1, y1, x2, y2` in pixels of the frame, the best first
    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]


class Answer(NamedTuple):
    """What the network says of one image, on its device."""

    head: dict[str, Any]  # of every anchor: the logits of its classes, and the offsets of its box
    features: list[Any]  # the maps whose sizes give the anchors
    images: Any  # the input, whose size scales them


@contextmanager
def reproducible(torch: Any) -> Iterator[None]:
    """Let the same input give the same bits within this block.

    cuDNN neither tries algorithms out (which of them wins may change), nor takes one that adds up in any order, nor
    rounds the input to TF32, where a difference in the last bit can become one of 1/1000.
    """
    settings = torch.backends.cudnn
    before = {name: getattr(settings, name) for name in REPRODUCIBLE}
    try:
        for name, value in REPRODUCIBLE.items():
            setattr(settings, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


class Detector:
    """SSDlite with MobileNetV3, without the resizing that torchvision puts before it: its input is ready.

    Parameters
    ----------
    examples : ndarray, (N, 3, height, width), float32
        Prepared images; they set the statistics and the threshold. Two or more, since the last feature map may be a
        single pixel, and one value has no variance.
    device : {"cpu", "cuda"}
        Where it is to work; weights, statistics and threshold come from the CPU in any case.
    seed : int
        Of the weights.

    Raises
    ------
    Unavailable
        A package is missing, or torch finds no GPU.
    """

    def __init__(self, examples: NDArray[np.float32], device: str, seed: int) -> None:
        self.torch = torch = need_torch(device, "models")
        models = need("torchvision.models.detection", "torchvision", INSTALL)
        from torchvision.models.detection.image_list import ImageList

        self._image_list = ImageList
        self._size = tuple(int(side) for side in examples.shape[2:])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._model = models.ssdlite320_mobilenet_v3_large(
                weights=None, weights_backbone=None, num_classes=CLASSES + 1
            )
        images = torch.from_numpy(examples)
        self._calibrate(images)
        self._model.score_thresh = self._choose_threshold(images[:1])
        self._model.to(torch.device(device))

    def _calibrate(self, images: Any) -> None:
        """Mean and variance of every batch normalisation from the examples."""
        for layer in self._model.modules():
            if isinstance(layer, self.torch.nn.BatchNorm2d):
                layer.reset_running_stats()
                layer.momentum = None  # the plain mean over batches, of which there is one
        self._model.train()
        with self.torch.no_grad():
            self._network(images)
        self._model.eval()

    def _choose_threshold(self, image: Any) -> float:
        """Halfway between two scores of the first example, so that none lies on the threshold."""
        scores = self.infer(image).head["cls_logits"].softmax(-1)[..., 1:].flatten()
        return float(scores.topk(CANDIDATES + 1).values[-2:].mean())

    def _network(self, images: Any) -> Answer:
        features = list(self._model.backbone(images).values())
        return Answer(self._model.head(features), features, images)

    def infer(self, images: Any) -> Answer:
        """Run the network on images (1, 3, height, width) float32 on the detector's device."""
        with self.torch.inference_mode():
            return self._network(images)

    def finish(self, answer: Answer, back: Callable[[Any], Any]) -> Detections:
        """Decode boxes, drop what is unlikely or overlaps, and bring the rest to the host.

        `back` takes boxes (N, 4) from pixels of the input to pixels of the frame, on the detector's device.
        """
        with self.torch.inference_mode():
            images = self._image_list(answer.images, [self._size])
            anchors = self._model.anchor_generator(images, answer.features)
            result = self._model.postprocess_detections(answer.head, anchors, [self._size])[0]
            arrays = (back(result["boxes"]), result["scores"], result["labels"])
            return Detections(*(array.cpu().numpy() for array in arrays))
