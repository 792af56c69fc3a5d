"""Three denoisers of deepinv with random weights, and the methods to run DRUNet that tell a split from cuDNN's choice.

DRUNet halves its image three times. In deepinv 0.5 its `forward` runs an image whole where every side is a multiple of
8 and at least 32; else, in eval mode and with no side below 64, `test_onesplit` runs four overlapping quadrants one
after the other, and a smaller image is padded. UNet pads to a multiple of 8, DnCNN takes any size. So DRUNet's memory
alone can jump with the remainder by 8, and each method here changes one thing about that:

* `padded-whole`: the image is padded to multiples of 8, so that it runs whole;
* `forced-split`: the quadrants, whatever the sides;
* `cudnn-benchmark`, `cudnn-no-benchmark`: cuDNN's algorithms chosen by trial, or by its heuristics (PyTorch's default);
* `no-cudnn`: PyTorch's own convolutions.

PyTorch keeps cuDNN's choice per shape for the whole process, whichever method asked first: methods that differ in
cuDNN's settings must be compared in processes of their own.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable, need, need_torch
from octopus_study.names import DRUNET_MULTIPLE, IMAGE_METHODS

MODELS: dict[str, Callable[[Any], Any]] = {
    "drunet": lambda zoo: zoo.DRUNet(3, 3, pretrained=None),
    "unet": lambda zoo: zoo.UNet(3, 3, scales=4, channels_per_scale=[64, 128, 256, 512]),
    "dncnn": lambda zoo: zoo.DnCNN(3, 3, pretrained=None),
}
SPLITTING = ("drunet",)  # models that may run an image in quadrants
CUDNN: dict[str, dict[str, bool]] = {
    "cudnn-benchmark": {"benchmark": True},
    "cudnn-no-benchmark": {"benchmark": False},
    "no-cudnn": {"enabled": False},
}
METHODS = tuple(row.name for row in IMAGE_METHODS)
INSTALL = "pip install -e './workflow[models]'"
NOISE_LEVEL = 0.1  # on the scale 0-1; only DRUNet looks at it
OVERLAP = 64  # `refield` of deepinv's own call: sides of the quadrants are multiples of it


def load(device: str = "cpu") -> tuple[Any, Any]:
    """Import PyTorch and deepinv's models; `Unavailable` where one is missing, or there is no GPU for ``cuda``."""
    torch = need_torch(device, "models")
    need("deepinv", "deepinv", INSTALL)  # as a whole: importing a part of it imports all
    return torch, need("deepinv.models", "deepinv", INSTALL)


@contextmanager
def changed(target: Any, **values: Any) -> Iterator[None]:
    """Change attributes, as of cuDNN one by one, since PyTorch's own context manager changes the others too."""
    before = {name: getattr(target, name) for name in values}
    try:
        for name, value in values.items():
            setattr(target, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)


class Denoiser:
    """One of `MODELS` in eval mode, without gradients, with weights drawn from a seed. It raises what `load` does."""

    def __init__(self, name: str, device: str, seed: int = 42) -> None:
        self.name, self.device = name, device
        self.torch, zoo = load(device)
        with self.torch.random.fork_rng(devices=[]):
            self.torch.manual_seed(seed)
            network = MODELS[name](zoo)
        self.network = network.eval().requires_grad_(False).to(device)

    def upload(self, image: NDArray[np.uint8]) -> Any:
        """The tensor (1, 3, H, W) float32 in 0-1 of an image (H, W, 3)."""
        planes = np.ascontiguousarray(image.transpose(2, 0, 1), np.float32)[None] / 255
        return self.torch.from_numpy(planes).to(self.device)

    def by(self, method: str) -> Callable[[Any], Any]:
        """What takes a tensor (B, 3, H, W) to one of the same shape, by one of `METHODS`."""
        run = {"padded-whole": self._padded_whole, "forced-split": self._forced_split}.get(method, self._run)
        settings = CUDNN.get(method, {})

        def denoise(images: Any) -> Any:
            with self.torch.no_grad(), changed(self.torch.backends.cudnn, **settings):
                return run(images)

        return denoise

    @contextmanager
    def counted_splits(self) -> Iterator[Counter[str]]:
        """Count the calls of `test_onesplit`, wrapped where the model looks it up; afterwards it is as before."""
        count = Counter[str]()
        if self.name not in SPLITTING:
            yield count
            return
        original = self._home().test_onesplit

        def counted(*arguments: Any, **keywords: Any) -> Any:
            count["splits"] += 1
            return original(*arguments, **keywords)

        with changed(self._home(), test_onesplit=counted):
            yield count

    def _run(self, images: Any) -> Any:
        return self.network(images, NOISE_LEVEL)

    def _padded_whole(self, images: Any) -> Any:
        height, width = images.shape[-2:]
        margins = (0, -width % DRUNET_MULTIPLE, 0, -height % DRUNET_MULTIPLE)
        padded = self.torch.nn.functional.pad(images, margins, mode="replicate") if any(margins) else images
        return self._run(padded)[..., :height, :width]

    def _forced_split(self, images: Any) -> Any:
        noise = self.torch.full_like(images[:, :1], NOISE_LEVEL)  # the fourth channel that `forward` adds
        channels = self.torch.cat((images, noise), 1)
        return self._home().test_onesplit(self.network.forward_unet, channels, refield=OVERLAP)

    def _home(self) -> Any:
        """The module in which the model's class looks up what it calls."""
        home = sys.modules[type(self.network).__module__]
        if not hasattr(home, "test_onesplit"):
            raise Unavailable(f"{self.name} of this deepinv has no test_onesplit to split an image with")
        return home
