"""RapidOCR's engine, and where a page's time goes: networks, what feeds them, and what is made of their answers."""

from __future__ import annotations

import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from octopus_study.baselines import onnx_runtime
from octopus_study.baselines.availability import need

INSTALL = "pip install -e './workflow[baselines,models]'"
SEARCH = "EngineConfig.onnxruntime.cuda_ep_cfg.cudnn_conv_algo_search"
# Steps of a page by their names in rows; the last two are sums.
NETWORKS, PAGE, LINES, ANSWERS, INPUTS, BESIDE = STEPS = ("networks", "page", "lines", "answers", "inputs", "beside")
# The engine's methods by the step that they are: what feeds the detector, and what feeds the two networks after it.
METHODS = {"detect_and_crop": PAGE, "crop_text_regions": LINES, "cls_and_rotate": LINES, "recognize_txt": LINES}


def make_engines(device: str) -> dict[str, Any]:
    """The engine with Octopus and as it is, with the same networks, which work on "cpu" or "cuda".

    On a GPU ONNX Runtime searches for convolutions wherever a shape isn't that of the run before. So it also works with
    shapes that stay, and without a search.
    """
    module = need("rapidocr", "RapidOCR", INSTALL)
    on_gpu = device == "cuda"
    onnx_runtime.load(on_gpu)
    from octopus.integrations.rapidocr import accelerate

    settings = {"EngineConfig.onnxruntime.use_cuda": on_gpu, "Global.log_level": "error"}
    engine = module.RapidOCR(params=settings)
    engines = {"octopus": accelerate(engine), "rapidocr": engine}
    for model in (engine.text_det, engine.text_cls, engine.text_rec):
        onnx_runtime.check_provider(model.session.session, on_gpu)
    if on_gpu:
        engines["octopus-steady"] = accelerate(engine, steady_shapes=True)
        engines["rapidocr-default"] = module.RapidOCR(params={**settings, SEARCH: "DEFAULT"})
    return engines


class Stopwatch:
    """Seconds by step; while a step goes on within another, the outer one stands still."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._within: list[float] = []

    def timed(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time is that of a step."""

        def run(*given: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            self._within.append(0.0)
            try:
                return function(*given, **options)
            finally:
                took = time.perf_counter() - begin
                self.spent[step] += took - self._within.pop()
                if self._within:
                    self._within[-1] += took

        return run


class _Session:
    """A session of ONNX Runtime whose runs are timed."""

    def __init__(self, session: Any, watch: Stopwatch) -> None:
        self._session = session
        for name in ("run", "run_with_iobinding"):
            setattr(self, name, watch.timed(NETWORKS, getattr(session, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def watch(engines: Iterable[Any]) -> Stopwatch:
    """Time the steps of engines that share their networks: their methods and sessions are wrapped, nothing else."""
    stopwatch = Stopwatch()
    for engine in engines:
        for name, step in METHODS.items():
            setattr(engine, name, stopwatch.timed(step, getattr(engine, name)))
        for model in (engine._load_det_model(), engine._load_cls_model(), engine._load_rec_model()):
            model.postprocess_op = stopwatch.timed(ANSWERS, model.postprocess_op)
            own = getattr(model.session, "of_shapes", {})  # beside the one that engines share
            for owner in (getattr(model.session, "_session", model.session), *own.values()):
                if not isinstance(owner.session, _Session):
                    owner.session = _Session(owner.session, stopwatch)
    return stopwatch


def read_all(engine: Any, pages: Iterable[Any], stopwatch: Stopwatch) -> dict[str, float]:
    """Read pages one after the other; milliseconds by step. What no step has, is the engine's own, beside networks."""
    stopwatch.spent.clear()
    begin = time.perf_counter()
    for page in pages:
        engine(page)
    whole = time.perf_counter() - begin
    spent = stopwatch.spent
    spent[INPUTS], spent[BESIDE] = spent[PAGE] + spent[LINES], whole - spent[NETWORKS]
    return {step: 1e3 * spent[step] for step in STEPS}


def peak_bytes(engine: Any, page: Any) -> int:
    """Most bytes of arrays and objects that Python holds at a time while a page is read, the page itself left out."""
    tracemalloc.start()
    try:
        engine(page)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
