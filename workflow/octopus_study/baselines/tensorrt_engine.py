"""TensorRT 10 or 11: an engine for one set of shapes, built from the two graphs that ONNX Runtime executes too.

It computes in float32 without TF32, as the graph says: a strongly typed network, the only kind that TensorRT 11 knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.baselines.graphs import Graph, GridSampleGraph, PaddedGraph, Tensor
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import blocking_stream, require_gpu

if TYPE_CHECKING:
    import tensorrt as trt


class TensorRtEngine:
    """An engine and its context, on memory that is bound once; the shapes of the inputs are its only ones."""

    def __init__(self, model: bytes, inputs: Sequence[Tensor], output: Tensor, on_gpu: bool) -> None:
        import tensorrt as trt

        self._logger = trt.Logger(trt.Logger.Severity.ERROR)
        plan = self._build(model, inputs)
        self._runtime = trt.Runtime(self._logger)
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        self._context = self._engine.create_execution_context()
        self._stream = blocking_stream()
        self._bind(inputs, output)

    def _build(self, model: bytes, inputs: Sequence[Tensor]) -> trt.IHostMemory:
        import tensorrt as trt

        builder = trt.Builder(self._logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        parser = trt.OnnxParser(network, self._logger)
        if not parser.parse(model):
            problems = "; ".join(parser.get_error(index).desc() for index in range(parser.num_errors))
            raise Unavailable(f"TensorRT {trt.__version__} can't read the model: {problems}")
        plan = builder.build_serialized_network(network, self._settings(builder, inputs))
        if plan is None:
            raise Unavailable(f"TensorRT {trt.__version__} can't build the engine")
        return plan

    def _settings(self, builder: trt.Builder, inputs: Sequence[Tensor]) -> trt.IBuilderConfig:
        """One profile with fixed shapes, and single precision that is single precision."""
        import tensorrt as trt

        config = builder.create_builder_config()
        config.clear_flag(trt.BuilderFlag.TF32)
        profile = builder.create_optimization_profile()
        for item in inputs:
            shape = trt.Dims(list(item.shape))
            profile.set_shape(item.name, shape, shape, shape)
        config.add_optimization_profile(profile)
        return config

    def _bind(self, inputs: Sequence[Tensor], output: Tensor) -> None:
        self._memory = [*inputs, output]
        for item in inputs:
            self._context.set_input_shape(item.name, item.shape)
        for item in self._memory:
            self._context.set_tensor_address(item.name, item.pointer)
        missing = self._context.infer_shapes()
        if missing:
            raise Unavailable(f"TensorRT can't infer the shapes of {', '.join(missing)}")

    def execute(self) -> None:
        """Queue the engine on a stream that is ordered with the default one. On the default stream itself TensorRT
        would wait for the device in every run."""
        if not self._context.execute_async_v3(int(self._stream.handle)):
            raise RuntimeError("TensorRT could not queue the engine; its log says why")


class _TensorRt(Graph):
    runtime = TensorRtEngine

    def __init__(self, job: CropJob) -> None:
        need("tensorrt", "TensorRT")  # before the batch is padded
        require_gpu(job, "TensorRT")
        super().__init__(job)


class TensorRtPadded(_TensorRt, PaddedGraph):
    """The published comparison's method: crops padded on the host, resized together by an engine."""

    name = "tensorrt-padded"


class TensorRtGridSample(_TensorRt, GridSampleGraph):
    """An engine with the same answer as Octopus."""

    name = "tensorrt-gridsample"
