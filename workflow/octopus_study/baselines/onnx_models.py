"""The graphs that ONNX Runtime executes, and TensorRT the first two, which are valid for every number of boxes.

`padded`: the published comparison's graph. It resizes items of one size, which are crops padded on the host.
`grid-sample`: frame and boxes go in, and the graph makes the sampling grid itself, clamped at each box's edge, so that
its answer is that of Octopus. All boxes are sampled as one tall image of a single frame: repeating the frame per box
would need gigabytes. `network`: a convolutional network.

The same model serves both runtimes: opset 17 and IR 8 are taken by ONNX Runtime from 1.13 and TensorRT from 8.6 on.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from octopus_study.baselines.availability import need

OPSET, IR = 17, 8
FRAME, BOXES, PADDED, CROPS = "frame", "boxes", "padded", "crops"
IMAGES, FEATURES = "images", "features"


class _Graph:
    """Nodes and constants, in the order in which they are added."""

    def __init__(self) -> None:
        self.onnx = need("onnx", "onnx", "pip install -e './workflow[baselines]'")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        """A named constant."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """A node whose output has its name."""
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def value(self, name: str, kind: str, shape: Sequence[int | str]) -> Any:
        """Type and shape of an input or output; a string is a dimension given at run time."""
        return self.onnx.helper.make_tensor_value_info(name, self.type(kind), list(shape))

    def type(self, kind: str) -> int:
        """ONNX's number of a NumPy dtype."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))

    def model(self, name: str, inputs: Sequence[Any], output: Any) -> bytes:
        """The checked model's bytes, the same in every call."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, list(inputs), [output], self.constants)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, producer_name="octopus", ir_version=IR, opset_imports=[opset])
        self.onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString(deterministic=True)


def _affine(graph: _Graph, source: str, mean: Sequence[float], std: Sequence[float], name: str) -> str:
    """`(value - mean) / std` per plane, as a product and a sum."""
    inverse = 1 / np.asarray(std, np.float64)
    gain = graph.constant("gain", inverse.reshape(-1, 1, 1))
    bias = graph.constant("bias", (-np.asarray(mean) * inverse).reshape(-1, 1, 1))
    return graph.node("Add", [graph.node("Mul", [source, gain], "scaled"), bias], name)


def padded_model(size: tuple[int, int], mean: Sequence[float], std: Sequence[float]) -> bytes:
    """Resize and normalise a padded batch, uint8 (N, H, W, C) to float32 (N, C, height, width)."""
    graph, channels = _Graph(), len(mean)
    values = graph.node("Cast", [PADDED], "values", to=graph.type("float32"))
    planes = graph.node("Transpose", [values], "planes", perm=[0, 3, 1, 2])
    items = graph.node("Slice", [graph.node("Shape", [planes], "extent"), *_first(graph, 2)], "items")
    sizes = graph.node("Concat", [items, graph.constant("size", size, np.int64)], "sizes", axis=0)
    resized = graph.node(
        "Resize", [planes, "", "", sizes], "resized", mode="linear", coordinate_transformation_mode="half_pixel"
    )
    _affine(graph, resized, mean, std, CROPS)
    inputs = [graph.value(PADDED, "uint8", ["n", "height", "width", channels])]
    return graph.model("padded", inputs, graph.value(CROPS, "float32", ["n", channels, *size]))


def network_model(weights: Sequence[Any], shape: tuple[int, ...]) -> tuple[bytes, tuple[int, ...]]:
    """3 x 3 convolutions with ReLU, and max-pooling where a weight is None, of images (N, C, H, W) float32 to features;
    and the shape of these."""
    graph, source, (count, channels, height, width) = _Graph(), IMAGES, shape
    for index, weight in enumerate(weights):
        name = FEATURES if index == len(weights) - 1 else f"layer{index}"
        if weight is None:
            source = graph.node("MaxPool", [source], name, kernel_shape=[2, 2], strides=[2, 2])
            height, width = height // 2, width // 2
        else:
            kernel = graph.constant(f"kernel{index}", weight)
            source = graph.node("Conv", [source, kernel], f"convolved{index}", pads=[1, 1, 1, 1])
            source, channels = graph.node("Relu", [source], name), len(weight)
    made = (count, channels, height, width)
    inputs, output = [graph.value(IMAGES, "float32", shape)], graph.value(FEATURES, "float32", made)
    return graph.model("network", inputs, output), made


def _first(graph: _Graph, count: int) -> list[str]:
    return [graph.constant("begin", [0], np.int64), graph.constant("end", [count], np.int64)]


def grid_sample_model(size: tuple[int, int], mean: Sequence[float], std: Sequence[float]) -> bytes:
    """Crop, resize and normalise: frame uint8 (H, W, C) and boxes float32 (N, 4) to float32 (N, C, height, width)."""
    graph, channels = _Graph(), len(mean)
    height, width = size
    values = graph.node("Cast", [FRAME], "values", to=graph.type("float32"))
    planes = graph.node("Transpose", [values], "planes", perm=[2, 0, 1])
    normal = _affine(graph, planes, mean, std, "normal")
    image = graph.node("Unsqueeze", [normal, graph.constant("axis0", [0], np.int64)], "image")
    grid = _grid(graph, size)
    tall = graph.node("GridSample", [image, grid], "tall", mode="bilinear", padding_mode="border", align_corners=0)
    split = graph.constant("split", [channels, -1, height, width], np.int64)
    items = graph.node("Reshape", [tall, split], "items")
    graph.node("Transpose", [items], CROPS, perm=[1, 0, 2, 3])
    inputs = [graph.value(FRAME, "uint8", ["height", "width", channels]), graph.value(BOXES, "float32", ["n", 4])]
    return graph.model("grid-sample", inputs, graph.value(CROPS, "float32", ["n", channels, height, width]))


def _grid(graph: _Graph, size: tuple[int, int]) -> str:
    """The sampling grid of all boxes, (1, N * height, width, 2), in units in which the frame reaches from -1 to 1."""
    for name, value in (("half", 0.5), ("one", 1.0), ("two", 2.0)):
        graph.constant(name, value)
    extent = graph.node("Cast", [graph.node("Shape", [FRAME], "extent")], "pixels", to=graph.type("float32"))
    height, width = size
    x = _axis(graph, "x", 0, width, graph.node("Gather", [extent, _index(graph, "x_side", 1)], "x_pixels"))
    y = _axis(graph, "y", 1, height, graph.node("Gather", [extent, _index(graph, "y_side", 0)], "y_pixels"))
    across = graph.node("Unsqueeze", [x, graph.constant("axes_x", [1, 3], np.int64)], "x_across")
    down = graph.node("Unsqueeze", [y, graph.constant("axes_y", [2, 3], np.int64)], "y_down")
    # Adding zeros repeats one axis along the other; both runtimes fuse that with what came before.
    x_all = graph.node("Add", [across, graph.constant("rows", np.zeros((1, height, 1, 1)))], "x_all")
    y_all = graph.node("Add", [down, graph.constant("columns", np.zeros((1, 1, width, 1)))], "y_all")
    pairs = graph.node("Concat", [x_all, y_all], "pairs", axis=3)
    return graph.node("Reshape", [pairs, graph.constant("tall_shape", [1, -1, width, 2], np.int64)], "grid")


def _axis(graph: _Graph, axis: str, column: int, count: int, pixels: str) -> str:
    """Positions of one axis, (N, count): evenly over the box, and no nearer to its edge than half a pixel."""

    def add(kind: str, inputs: Sequence[str], step: str) -> str:
        return graph.node(kind, inputs, f"{axis}_{step}")

    low = graph.node("Gather", [BOXES, _index(graph, f"{axis}1", [column])], f"{axis}_low", axis=1)
    high = graph.node("Gather", [BOXES, _index(graph, f"{axis}2", [column + 2])], f"{axis}_high", axis=1)
    steps = graph.constant(f"{axis}_steps", ((np.arange(count) + 0.5) / count)[None])
    spread = add("Mul", [add("Sub", [high, low], "length"), steps], "spread")
    position = add("Add", [low, spread], "position")
    position = add("Max", [position, add("Add", [low, "half"], "first")], "from_first")
    position = add("Min", [position, add("Sub", [high, "half"], "last")], "to_last")
    return add("Sub", [add("Mul", [position, add("Div", ["two", pixels], "scale")], "doubled"), "one"], "grid")


def _index(graph: _Graph, name: str, value: Any) -> str:
    return graph.constant(f"{name}_index", value, np.int64)
