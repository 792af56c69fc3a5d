"""Two pipelines of two models each, as a drone has them: visual odometry and matching against a satellite image.

* `visual_odometry`: SuperPoint on two successive images, then LightGlue on their keypoints.
* `satellite_matching`: DINOv2 on candidate tiles, then EfficientLoFTR on a pair of tiles. It stands in for LiteSAM,
  which is in no package.

The models are transformers' own, built from their configurations with random weights of a fixed seed: what is studied
is time, and that does not depend on the weights. Two settings keep it so. LightGlue neither stops early nor prunes
points, and both matchers accept every mutual match, since random weights give none that is confident.

A pipeline begins with images on the host and ends with a displacement on the host. Its stages are the models; whoever
runs them decides on streams, threads and processes (`octopus_study.studies.concurrency.arms`).
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import need, need_torch

VISUAL_ODOMETRY, SATELLITE_MATCHING = "visual_odometry", "satellite_matching"
NAMES = (VISUAL_ODOMETRY, SATELLITE_MATCHING)  # the latency-critical one first
STAGES = ("superpoint", "lightglue", "dinov2", "efficientloftr")  # the models of both, in order
# cuBLAS promises the same bits whichever stream it works on only with a workspace of fixed size per stream; it reads
# this when it starts.
DETERMINISM = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

# Standard deviation of the convolutions' weights. With transformers' default the images' contrast dies away on its way
# through the layers, and what is left are ties.
SPREAD = {"superpoint": 0.05, "efficientloftr": 0.1}

# Some tens of milliseconds per pipeline on an H200.
IMAGE = (768, 1024)  # height and width of an image of visual odometry
KEYPOINTS = 4096  # of an image at most
TILE, TILES = 518, 4  # side and number of DINOv2's tiles
PAIR = 832  # side of EfficientLoFTR's two tiles


class Stage(NamedTuple):
    """One model: the names of the tensors that it takes and gives, and what computes these from those."""

    name: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    run: Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Pipeline:
    """Models that work one after the other."""

    name: str
    inputs: Mapping[str, Any]  # tensors on the host
    stages: tuple[Stage, ...]
    results: tuple[str, ...]  # tensors that go back to the host
    # What the host does with the results, arrays by name; returns a displacement in units of the image's size
    finish: Callable[[Mapping[str, NDArray[Any]]], NDArray[Any]]
    modules: tuple[Any, ...] = ()  # whose weights must be where the tensors are

    def place(self, device: str) -> None:
        """Bring the weights to a device."""
        for module in self.modules:
            module.to(device)


def load(device: str = "cpu") -> tuple[Any, Any]:
    """Import PyTorch and transformers, and make what they compute repeatable."""
    for name, value in DETERMINISM.items():
        os.environ.setdefault(name, value)
    torch = need_torch(device, "models")
    zoo = need("transformers", "transformers", "pip install -e './workflow[models]'")
    torch.backends.cudnn.benchmark = False  # which would choose by time, and so differently in each process
    torch.backends.cudnn.deterministic = True
    return torch, zoo


def build(names: Iterable[str], frame: NDArray[np.uint8], seed: int, torch: Any, zoo: Any) -> dict[str, Pipeline]:
    """Build pipelines on the host; the weights of one don't depend on whether the other is built too. `frame`, (H, W,
    3), is where the images are cut from, read beyond its sides from the other side on; `torch` and `zoo` are from
    `load`."""
    pipelines = {}
    for name in names:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            pipelines[name] = _MAKERS[name](frame, torch, zoo)
    return pipelines


def _visual_odometry(frame: NDArray[np.uint8], torch: Any, zoo: Any) -> Pipeline:
    detector_config = zoo.SuperPointConfig(max_keypoints=KEYPOINTS, initializer_range=SPREAD["superpoint"])
    config = zoo.LightGlueConfig(
        keypoint_detector_config=detector_config,
        depth_confidence=-1.0, width_confidence=-1.0, filter_threshold=0.0,
    )  # fmt: skip
    detector = _still(zoo.SuperPointForKeypointDetection(detector_config))
    matcher = _still(zoo.LightGlueForKeypointMatching(config))
    # LightGlue comes with a detector of its own; here it is handed what the stage before it has found.
    given = matcher.keypoint_detector = _given(torch)
    detected = ("keypoints", "scores", "descriptors", "mask")

    def detect(images: Any) -> tuple[Any, ...]:
        outputs = detector(images[0])
        return tuple(getattr(outputs, name) for name in detected)

    def match(images: Any, *detections: Any) -> tuple[Any, ...]:
        given.detections = detections
        outputs = matcher(images)
        return outputs.matches, outputs.matching_scores, outputs.keypoints

    stages = (
        Stage("superpoint", ("images",), detected, detect),
        Stage("lightglue", ("images", *detected), ("matches", "matching_scores", "points"), match),
    )
    images = [window(frame, 40 + shift, 100 + 2 * shift, *IMAGE) for shift in (0, 8)]
    inputs = {"images": _tensor(torch, images)[None]}
    results = ("matches", "matching_scores", "points")
    return Pipeline(VISUAL_ODOMETRY, inputs, stages, results, _odometry, (detector, matcher))


def _satellite_matching(frame: NDArray[np.uint8], torch: Any, zoo: Any) -> Pipeline:
    describer = _still(zoo.Dinov2Model(zoo.Dinov2Config(image_size=TILE, patch_size=14)))
    spread = SPREAD["efficientloftr"]
    config = zoo.EfficientLoFTRConfig(coarse_matching_threshold=0.0, initializer_range=spread)
    matcher = _still(zoo.EfficientLoFTRForKeypointMatching(config))

    def describe(tiles: Any) -> tuple[Any, ...]:
        return (describer(tiles).pooler_output,)

    def match(pair: Any) -> tuple[Any, ...]:
        outputs = matcher(pair)
        return outputs.matching_scores, outputs.keypoints

    stages = (
        Stage("dinov2", ("tiles",), ("features",), describe),
        Stage("efficientloftr", ("pair",), ("matching_scores", "points"), match),
    )
    tiles = [window(frame, 97 * index, 311 * index, TILE, TILE) for index in range(TILES)]
    pair = [window(frame, 30 + shift, 500 + shift, PAIR, PAIR) for shift in (0, 16)]
    inputs = {"tiles": _tensor(torch, tiles), "pair": _tensor(torch, pair)[None]}
    results = ("features", "matching_scores", "points")
    return Pipeline(SATELLITE_MATCHING, inputs, stages, results, _satellite, (describer, matcher))


_MAKERS: dict[str, Callable[..., Pipeline]] = {
    VISUAL_ODOMETRY: _visual_odometry,
    SATELLITE_MATCHING: _satellite_matching,
}


def _still(module: Any) -> Any:
    return module.eval().requires_grad_(False)


def _given(torch: Any) -> Any:
    """A module in a detector's place that returns what it was given."""

    class Given(torch.nn.Module):  # type: ignore[misc, name-defined]
        detections: tuple[Any, ...] = ()

        def forward(self, images: Any) -> tuple[Any, ...]:
            return self.detections

    return Given()


def window(frame: NDArray[np.uint8], top: int, left: int, height: int, width: int) -> NDArray[np.uint8]:
    """Cut an image from a frame, read beyond its sides from the other side on."""
    rows = (top + np.arange(height)) % frame.shape[0]
    columns = (left + np.arange(width)) % frame.shape[1]
    return frame[rows[:, None], columns]


def _tensor(torch: Any, images: list[NDArray[np.uint8]]) -> Any:
    """Images (H, W, 3) as one tensor (N, 3, H, W) float32 in 0-1."""
    planes = np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 255
    return torch.from_numpy(np.ascontiguousarray(planes))


def _odometry(results: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Median displacement of the matched keypoints, x and y."""
    partner, (before, after) = results["matches"].reshape(2, -1)[0], results["points"][0]
    matched = partner >= 0
    return _median(after[partner[matched]] - before[matched])


def _satellite(results: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Median displacement of the windows that match, x and y."""
    before, after = results["points"][0]
    return _median((after - before)[results["matching_scores"][0, 0] > 0])


def _median(moves: NDArray[Any]) -> NDArray[Any]:
    return np.median(moves, axis=0) if len(moves) else np.zeros(2, np.float32)
