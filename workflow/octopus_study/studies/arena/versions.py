"""The fused kernel from plain to fast, each version a method: see the list of versions in `kernels.cuda.stream`."""

from __future__ import annotations

from octopus.arrays.launch import launch
from octopus.arrays.views import ArrayView, view
from octopus.backends.cuda import stream_of
from octopus.backends.cuda.device import current
from octopus.backends.cuda.memory import upload
from octopus.crop.launch import Call, PlainLauncher, StreamLauncher, Variant
from octopus.crop.options import CropOptions
from octopus.crop.spec import CropSpec, make_spec
from octopus.kernels.cuda.tiles import Shape
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod


class _VersionLauncher(StreamLauncher):
    """The streaming kernel with some of its means left out."""

    def __init__(
        self, spec: CropSpec, processors: int, l2_bytes: int, values: int, words: bool, prefetch: bool
    ) -> None:
        super().__init__(spec, processors, l2_bytes if prefetch else 0)
        self._shape = Shape(values, self._shape.rows, self._shape.threads)
        self._may_read_words = words

    def _variant(
        self, frame: ArrayView, out: int, box_dtype: str, index_dtype: str, items: tuple[str, ...] = ()
    ) -> Variant:
        variant = super()._variant(frame, out, box_dtype, index_dtype, items)
        return variant._replace(words=variant.words and self._may_read_words)


class KernelVersion(CropMethod):
    """One version of the kernel on a job's boxes, in device memory.

    Parameters
    ----------
    job : CropJob
        On the GPU.
    means : tuple or None
        Values per store, whether pixels are read as words, whether the frame is prefetched; None for the plain kernel.
    """

    def __init__(self, job: CropJob, name: str, means: tuple[int, bool, bool] | None) -> None:
        super().__init__(job)
        self.name = name
        self._frame = view(job.device_frame, "frame")
        self._boxes = upload(Octopus(job).build())
        self._stream = stream_of(None)
        spec = make_spec(self._frame, CropOptions(job.size, job.mean, job.std))
        properties = current().properties
        limits = properties.multiprocessor_count, properties.l2_cache_size
        launcher = PlainLauncher(spec) if means is None else _VersionLauncher(spec, *limits, *means)
        call = Call(self._frame, view(self._boxes, "boxes"), view(job.out, "out"))
        self._prepared, self._addresses = launcher.prepare(call), call.addresses

    def kernels(self) -> None:
        launch(self._prepared, self._addresses, self._stream)
