"""Two networks at once by ONNX Runtime: two sessions, a session beside PyTorch, and two sessions of one network.

The networks are 3 x 3 convolutions, made here, so that both runtimes compute the same: `odometry` on two images as
SuperPoint's encoder does, `matching` on four tiles with more channels. Weights are random, and float32 is float32: the
published GPU has no TF32. Images and features stay on the device; a run ends when the features are there.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable, need_torch
from octopus_study.baselines.graphs import Staged, tensor
from octopus_study.baselines.onnx_models import FEATURES, IMAGES, network_model
from octopus_study.baselines.onnx_runtime import OnnxRuntimeSession
from octopus_study.studies.concurrency.models import IMAGE, TILE, TILES, window
from octopus_study.studies.concurrency.processes import TURNED_OFF, Process, Processes

FIRST, SECOND, BATCH = "first", "second", "batch"
# Channels of the layers, 0 for max-pooling; images, and their height and width.
NETWORKS = {
    "odometry": ((64, 64, 0, 64, 64, 0, 128, 128, 0, 128, 128, 256, 65), 2, IMAGE),
    "matching": ((32, 64, 0, 64, 128, 0, 128, 256, 0, 256, 256), TILES, (TILE, TILE)),
}
# The workloads: by what each of both is run, and which it is.
PAIRS = {
    "two-sessions": {FIRST: ("onnxruntime", "odometry"), SECOND: ("onnxruntime", "matching")},
    "session-and-torch": {FIRST: ("onnxruntime", "odometry"), SECOND: ("torch", "matching")},
    "one-model": {FIRST: ("onnxruntime", "odometry"), SECOND: ("onnxruntime", "odometry")},
}
ALONE = ("first-alone", "second-alone")
WAYS = dict.fromkeys(PAIRS, (*ALONE, "sequential", "two-threads", "two-processes"))
WAYS["one-model"] += (BATCH,)
Weights = Sequence[NDArray[np.float32] | None]


class Share(NamedTuple):
    """What a process needs to make the networks of a workload."""

    arm: str  # the workload
    names: tuple[str, ...]
    frame: NDArray[np.uint8]  # (H, W, 3)
    seed: int
    on_gpu: bool
    scale: int = 1  # by which images are smaller


class Network(Protocol):
    """A network with its images, ready to run."""

    def __init__(self, weights: Weights, images: NDArray[np.float32], on_gpu: bool) -> None: ...
    def run(self) -> None: ...
    def clear(self) -> None: ...
    def features(self) -> NDArray[np.float32]: ...


class OnnxNetwork:
    """A session of ONNX Runtime on memory that it is bound to."""

    def __init__(self, weights: Weights, images: NDArray[np.float32], on_gpu: bool) -> None:
        model, shape = network_model(weights, images.shape)
        self._on_gpu, self._images = on_gpu, Staged(images.shape, np.float32, on_gpu)
        self._features = Staged(shape, np.float32, on_gpu)
        self._images.host[...] = images
        self._images.send()
        bound = tensor(IMAGES, self._images.device), tensor(FEATURES, self._features.device)
        self._session = OnnxRuntimeSession(model, bound[:1], bound[1], on_gpu)

    def run(self) -> None:
        self._session.execute()
        self._session.wait()

    def clear(self) -> None:
        self._features.host.fill(np.nan)
        self._features.send()

    def features(self) -> NDArray[np.float32]:
        made = self._features.device
        return np.array(made.copy_to_host() if self._on_gpu else made)


class TorchNetwork:
    """PyTorch on a stream of its own."""

    def __init__(self, weights: Weights, images: NDArray[np.float32], on_gpu: bool) -> None:
        device = "cuda" if on_gpu else "cpu"
        self._torch = torch = need_torch(device, "models")
        self._weights = [weight if weight is None else torch.from_numpy(weight).to(device) for weight in weights]
        self._images, self._features = torch.from_numpy(images).to(device), None
        self._stream = torch.cuda.Stream() if on_gpu else None

    def run(self) -> None:
        torch, values = self._torch, self._images
        plain = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
        with torch.no_grad(), plain, torch.cuda.stream(self._stream):
            for weight in self._weights:
                if weight is None:
                    values = torch.nn.functional.max_pool2d(values, 2)
                else:
                    values = torch.conv2d(values, weight, padding=1).relu_()
        if self._stream is not None:
            self._stream.synchronize()
        self._features = values

    def clear(self) -> None:
        self._features = None

    def features(self) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._features.cpu().numpy()  # type: ignore[attr-defined]
        return found


RUNTIMES: dict[str, type[Network]] = {"onnxruntime": OnnxNetwork, "torch": TorchNetwork}


def weights_of(kind: str, seed: int) -> Weights:
    """Random weights that keep the size of what they are applied to; None where values are pooled."""
    rng, channels, weights = np.random.default_rng(seed), 3, []
    for width in NETWORKS[kind][0]:
        weights.append(_spread(rng, width, channels) if width else None)
        channels = width or channels
    return weights


def _spread(rng: np.random.Generator, width: int, channels: int) -> NDArray[np.float32]:
    return rng.standard_normal((width, channels, 3, 3), np.float32) * np.float32((2 / (9 * channels)) ** 0.5)


def _network(share: Share, *names: str) -> Network:
    """One of a workload's networks, or the one of both on the images of both."""
    runtime, kind = PAIRS[share.arm][names[0]]
    _, count, size = NETWORKS[kind]
    height, width = (side // share.scale for side in size)
    places = [(97 * index, 311 * index + 500 * (name == SECOND)) for name in names for index in range(count)]
    images = np.stack([window(share.frame, *place, height, width) for place in places]).transpose(0, 3, 1, 2)
    return RUNTIMES[runtime](weights_of(kind, share.seed), np.ascontiguousarray(images, np.float32) / 255, share.on_gpu)


class Networks:
    """Networks of one process, one after the other; or each in a thread of `threads`."""

    def __init__(self, networks: Mapping[str, Network], threads: ThreadPoolExecutor | None = None) -> None:
        self._networks, self._map = networks, threads.map if threads else map

    def run(self) -> dict[str, float]:
        """Run all, and wait for all."""
        for _ in self._map(lambda network: network.run(), self._networks.values()):
            pass
        return {}

    def check(self) -> dict[str, NDArray[Any]]:
        """The features of a run on poisoned memory, by network; a batch has those of both."""
        for network in self._networks.values():
            network.clear()
        self.run()
        found = {name: network.features() for name, network in self._networks.items()}
        return dict(zip((FIRST, SECOND), np.split(found[BATCH], 2), strict=True)) if BATCH in found else found

    def close(self) -> None:
        """Nothing is open; threads are their maker's."""


def in_process(share: Share) -> Networks:
    """What a process of its own holds."""
    return Networks({name: _network(share, name) for name in share.names})


def makers(share: Share, processes: bool, stack: ExitStack) -> dict[str, Callable[[], Networks | Processes]]:
    """What makes each way to run both; threads and processes end with `stack`."""
    here = cache(partial(_network, share))  # ways take turns on the same two networks

    def of(*names: str, threads: bool = False) -> Networks:
        pool = stack.enter_context(ThreadPoolExecutor(len(names))) if threads else None
        return Networks({name: here(name) for name in names}, pool)

    def two_processes() -> Processes:
        if not processes:
            raise Unavailable(TURNED_OFF)
        workers = [Process(share._replace(names=(name,)), target=f"{__name__}:in_process") for name in (FIRST, SECOND)]
        for worker in workers:
            stack.callback(worker.close, kill=True)
            worker.ready()
        return Processes(workers)

    ways: dict[str, Callable[[], Networks | Processes]] = {
        ALONE[0]: partial(of, FIRST),
        ALONE[1]: partial(of, SECOND),
        "sequential": partial(of, FIRST, SECOND),
        "two-threads": partial(of, FIRST, SECOND, threads=True),
        "two-processes": two_processes,
        BATCH: lambda: Networks({BATCH: _network(share, FIRST, SECOND)}),
    }
    return {name: ways[name] for name in WAYS[share.arm]}
