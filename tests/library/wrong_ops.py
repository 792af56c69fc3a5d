"""Wrong calls of operations on ragged batches: `ops`, `RaggedPlan`, `blockmap`, `tune`."""

from functools import partial

import numpy as np
from wrong_batches import BYTES, IMAGES, SEQUENCES, SHAPES, VALUES
from wrong_calls import NO_GPU, Equal, python, read_only, rows, same, torch

import octopus
from octopus import RaggedBatch, RaggedPlan, blockmap, ops

NAN, INF = np.nan, np.inf


def plan(operation="multiply", batch=IMAGES, **options):
    return RaggedPlan(operation, batch, **{"device": "cpu", **options}).run(IMAGES, 2)


def run(batch=IMAGES, values=(2,), operation="multiply", **given):
    return RaggedPlan(operation, IMAGES, device="cpu").run(batch, *values, **given)


def build(strategy="lookup", offsets=(0, 3, 8), **options):
    return blockmap.build(strategy, offsets, **options).offsets


multiply = partial(ops.multiply, batch=IMAGES, gain=2, device="cpu")
normalize = partial(ops.normalize, IMAGES, mean=0, std=2, device="cpu")
threshold, gamma = (partial(function, IMAGES, device="cpu") for function in (ops.threshold, ops.gamma))
blur, sobel = (partial(function, batch=IMAGES, device="cpu") for function in (ops.blur3x3, ops.blur5x5_sobel))
tune = partial(octopus.tune, device="cpu", keep=False)
OTHER_CUT = RaggedBatch.from_arrays(VALUES, [[3, 2], [1, 2]])
ROWS = [
    *rows("ops.multiply", multiply, "batch",
        (None, "multiply works on a RaggedBatch, found NoneType; RaggedBatch.from_list makes one"),
        (IMAGES.like(VALUES.astype(np.float64)), "the elements must be float32 or uint8, found float64"),
        (SEQUENCES, Equal(SEQUENCES.like(SEQUENCES.values * np.float32(2))))),
    *rows("ops.multiply", multiply, "gain",
        ("a", "the gain must be one number, or one per item, found 'a'"),
        ([1, 2, 3], "the gain must be one number or 2, one per item"), ([[1, 2]], "of shape (1, 2)"),
        ([1, [2, 3]], "the gain must be one number, or one per item"),
        ([1, NAN], "the gain of item 1 is not a finite number"), (INF, "the gain is not a finite number"),
        (1e300, "the gain leaves the range of float32"), ([1, -1e39], "the gain of item 1 leaves the range"),
        (10**40, "the gain"), (1j, "the gain"),
        (np.ma.masked_array([1, 2], [0, 1]),
         "the gain is a masked array, whose mask would be ignored; fill its holes first: .filled(value)"),
        (torch(lambda t: t.ones(2, requires_grad=True), "grad"), "the gain requires"), (np.array(2), same()),
        (np.float16(2), same()), ([2, 2], same()), (torch(lambda t: t.tensor([2.0, 2.0]), "tensor"), same())),
    *rows("ops.multiply", multiply, "out",
        (np.zeros(7, np.float32), "out must be (shape, dtype, side, contiguous)"),
        (np.zeros(16, np.float32)[::2], "out must be (shape, dtype, side, contiguous)"),
        (read_only(VALUES), "out is read-only; pass an array that can be written, or no out at all"),
        ([0] * 8, "out is a list"), (np.ma.zeros(8, np.float32), "out is a masked array"),
        (np.zeros(8, np.float32), same())),
    *rows("ops.multiply", multiply, "strategy",
        ("magic", "there is no strategy 'magic'; use auto or one of lookup"), (None, "there is no strategy None"),
        (5, "there is no strategy 5"), (np.array(["lookup", "auto"]), "there is no strategy array("),
        ("lookup", same())),
    *rows("ops.multiply", multiply, "threshold",
        (0, "threshold must be a whole number, at least 1"), (True, "found True"), (2**31, "found 2147483648"),
        (np.ones(500), "threshold must be a whole number"),
        (np.int8(4), "threshold=4 is for strategy=\"block_metadata\" alone, found 'auto'; leave it out")),
    *rows("ops.multiply", multiply, "**",
        ({"strategy": "block_metadata", "threshold": 1.5}, "threshold must be a whole number"),
        ({"strategy": "block_metadata", "threshold": np.array(1)}, same()),
        ({"strategy": "lookup", "threshold": 4}, "is for strategy=\"block_metadata\" alone, found 'lookup'"),
        ({"strategy": "magic", "threshold": 4}, "there is no strategy 'magic'"),
        ({"device": "gpu"}, "device='gpu' is unknown"), ({"device": None}, "device=None is unknown"),
        ({"device": "cuda"}, NO_GPU), ({"stream": "x"}, "leave stream out"), ({"std": 3}, python("multiply"))),
    *rows("ops.normalize", normalize, "std",
        (0, "the std is not positive"), ([1, -2], "the std of item 1 is not positive"),
        (NAN, "the std is not a finite number"), (1e-46, "the std"),
        (1e-39, "the std is too small for float32 to hold its inverse"),
        ("1", "the std must be one number, or one per item, found '1'"),
        ([1, 2, 3], "the std must be one number or 2")),
    *rows("ops.normalize", normalize, "mean",
        (None, "the mean must be one number, or one per item, found None"),
        ([1, NAN], "the mean of item 1 is not a finite number")),
    *rows("ops.normalize", normalize, "gain", (1, python("normalize"))),
    *rows("ops.threshold", threshold, "level",
        (NAN, "the level is not a finite number"), ("a", "the level must be one number, or one per item, found 'a'"),
        ([1, 2, 3], "the level must be one number or 2")),
    *rows("ops.gamma", gamma, "exponent",
        (INF, "the exponent is not a finite number"),
        (None, "the exponent must be one number, or one per item, found None")),
    *rows("ops.blur3x3", blur, "**",
        ({"batch": SEQUENCES}, "blur3x3 works on images (height, width), found sequences"),
        ({"batch": RaggedBatch.from_list([np.ones((2, 2, 3), np.float32)])}, "found items of 3 dimensions"),
        ({"batch": None}, "blur3x3 works on a RaggedBatch"), ({"out": read_only(VALUES)}, "out is read-only"),
        ({"out": VALUES}, "out lies in the memory of the values or parameters, which blur3x3 reads"),
        ({"radius": 3}, python("blur3x3"))),
    *rows("ops.blur5x5_sobel", sobel, "**",
        ({"batch": SEQUENCES}, "blur5x5_sobel works on images (height, width), found sequences"),
        ({"out": VALUES}, "which blur5x5_sobel reads while it writes"), ({"gain": 3}, python("blur5x5_sobel"))),
    *rows("RaggedPlan", plan, "**",
        ({"operation": "sharpen"}, "there is no operation 'sharpen'; use one of multiply"),
        ({"operation": None}, "there is no operation None"), ({"operation": "x" * 500}, "there is no operation"),
        ({"operation": ["multiply"]}, "there is no operation ['multiply']"),
        ({"batch": VALUES}, "multiply works on a RaggedBatch, found ndarray"),
        ({"batch": SEQUENCES}, "item 0 of the batch has 6 elements, the plan is for 3"),
        ({"threshold": 1.5}, "threshold must be a whole number"),
        ({"threshold": 4, "strategy": "block_search"}, 'threshold=4 is for strategy="block_metadata" alone'),
        ({"made": blockmap.build("block_search", [0, 6, 8])}, same()), ({"device": "cuda"}, NO_GPU),
        ({"gain": 3}, python("RaggedPlan"))),
    *rows("RaggedPlan.run", run, "**",
        ({"values": ()}, "multiply takes 1 parameters (gain), found 0"),
        ({"batch": VALUES}, "multiply works on a RaggedBatch, found ndarray; RaggedBatch.from_list makes one"),
        ({"batch": SEQUENCES}, "item 0 of the batch has 3 elements, the plan is for 6"),
        ({"batch": BYTES}, "the plan is for (items, elements, dtype, side) (2, (8,), 'float32', 'cpu')"),
        ({"batch": RaggedBatch.from_arrays(VALUES, SHAPES[::-1])}, "item 0 of the batch has 2 elements"),
        ({"batch": OTHER_CUT, "operation": "blur3x3", "values": ()}, "item 0 of the batch has shape (3, 2)"),
        ({"batch": OTHER_CUT}, same()), ({"out": VALUES[:7]}, "out must be (shape, dtype, side, contiguous)"),
        ({"stream": 7}, "leave stream out"), ({"gain": 7}, python("run"))),
    *rows("blockmap.build", build, "strategy",
        ("magic", "there is no strategy 'magic'; use one of lookup"), (None, "there is no strategy None"),
        ("auto", "there is no strategy 'auto'")),
    *rows("blockmap.build", build, "offsets",
        (None, "offsets is None"), ([], "offsets must be a flat integer array of N + 1 entries"),
        ([[0, 3]], "of (1, 2)"), ([0.0, 3.0], "found float64"), ([1, 3], "offsets must start at 0, found 1"),
        ([0, 5, 3], "offsets must not fall: item 1 runs from 5 to 3"), ("03", "offsets is a str"),
        (np.array([0, 3, 8], np.uint64), same())),
    *rows("blockmap.build", build, "**",
        ({"threshold": 1.5}, "threshold must be a whole number"), ({"threshold": 0}, "found 0"),
        ({"strategy": "block_metadata", "offsets": [0, 2**40], "threshold": 1},
         "more than a grid holds; raise threshold"),
        ({"strategy": "block_metadata", "offsets": [0, 5, 3]}, "offsets must not fall"),
        ({"strategy": "thread_search", "offsets": [0, 5, 3]}, "offsets must not fall")),
    *rows("tune", tune, "**",
        ({"uses": 0}, "uses must be a whole number, at least 1"), ({"uses": 1.5}, "found 1.5"),
        ({"uses": INF}, "found inf"), ({"uses": "3"}, "found '3'"), ({"uses": None}, "found None"),
        ({"device": "gpu"}, "device='gpu' is unknown"), ({"device": "cuda"}, NO_GPU), ({"rounds": 3}, python("tune")),
        ({"sizes": [[1, 2, 3]]}, "sizes must be heights and widths"), ({"sizes": [0.5]}, "found [0.5]"),
        ({"sizes": [4, 0]}, "sizes must be 1 or more, found 0"), ({"sizes": []}, "found []")),
]  # fmt: skip
