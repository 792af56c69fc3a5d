"""Wrong calls of `RaggedBatch`."""

import sys
from functools import partial
from unittest import mock

import numpy as np
from wrong_calls import Equal, Error, rows, same, torch

from octopus import MissingPackageError, RaggedBatch

NAN, FAR = np.nan, 2**63 - 1
IMAGES = RaggedBatch.from_list([np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 2), np.float32)])
BYTES = IMAGES.like(IMAGES.values.astype(np.uint8))
SEQUENCES = RaggedBatch.from_offsets(np.arange(8, dtype=np.float32), [0, 3, 8])
VALUES, SHAPES = IMAGES.values, [[2, 3], [1, 2]]


def missing(package, call):
    """A call where a package is not installed."""

    def without(**given):
        with mock.patch.dict(sys.modules, {package: None}):
            return call(**given)

    return without


def padded(fill, batch=IMAGES):
    return batch.to_padded(fill)


from_arrays = partial(RaggedBatch.from_arrays, values=VALUES, shapes=SHAPES)
from_offsets = partial(RaggedBatch.from_offsets, values=VALUES, offsets=(0, 6, 8))
ROWS = [
    *rows("RaggedBatch.from_list", RaggedBatch.from_list, "items",
        (None, "from_list takes a list of arrays, found None"), ("abc", "found a str"),
        ([], "no dtype; use RaggedBatch.from_arrays(numpy.empty(0, dtype), numpy.empty((0, D), int))"),
        ([np.ones(3), np.ones(3, np.float32)], "items must share dtype and dimensions"),
        ([["a"], ["b"]], "values must be numbers in the machine's byte order, found <U1"),
        ([[1, [2, 3]]], "item 0 must be an array, found rows of different length"),
        ([np.ma.masked_array([1, 2], [0, 1])], "item 0 is a masked array"),
        (torch(lambda t: [t.ones(2), np.ones(2, np.float32)], "mixed"), "items must come from one library"),
        (torch(lambda t: [t.ones(2).to_sparse()], "sparse"), "item 0 is a sparse tensor"),
        ([[1, 2], (3,)], Equal(RaggedBatch.from_offsets(np.array([1, 2, 3]), [0, 2, 3])))),
    *rows("RaggedBatch.from_arrays", from_arrays, "values",
        (None, "values is None"), ([1, 2, 3], "values is a list"),
        (VALUES[:7], "offsets run from 0 to 8; they must run from 0 to the 7 values"),
        (VALUES.reshape(2, 4), "values must be a flat, contiguous array, found (2, 4)"),
        (VALUES.repeat(2)[::2], "values must be a flat, contiguous array"),
        (VALUES.astype(">f4"), "machine's byte order, found >f4"),
        (np.ma.masked_array(VALUES, VALUES > 3), "values is a masked array"),
        (torch(lambda t: t.ones(8, requires_grad=True), "grad"), "values requires"),
        (VALUES > 3, Equal(IMAGES.like(VALUES > 3)))),
    *rows("RaggedBatch.from_arrays", from_arrays, "shapes",
        (None, "shapes must be an integer array of 2 dimension(s)"),
        ([[2, 3], [1]], "shapes must be an integer array on the host"),
        ([[2, 3], [1, 1]], "offsets run from 0 to 7; they must run from 0 to the 8 values"),
        ([[-2, -3], [1, 2]], "item 0 has a negative side"),
        ([[2**40, 2**40], [1, 2]], "item 0 has more elements than any memory"),
        ([[1, 1], [2**32, 2**32]], "item 1 has more elements"), (np.array([[2, 3]], "m8[s]"), "integer array"),
        (np.ma.masked_array(SHAPES, [[0, 1], [0, 0]]), "shapes is a masked array"),
        (np.array(SHAPES, np.uint8), same())),
    *rows("RaggedBatch.from_offsets", from_offsets, "offsets",
        (None, "offsets is None"), ("ab", "offsets is a str"),
        ([], "no offsets; a batch without items has the offsets [0]"), ([1, 6, 8], "offsets run from 1 to 8"),
        ([0, 7, 6, 8], "offsets must not fall: item 1 runs from 7 to 6"), ([0.0, 6.0, 8.0], "found float64"),
        ([0, [6], 8], "offsets must be an integer array"),
        (np.ma.masked_array([0, 6, 8], [0, 1, 0]), "offsets is a masked array"),
        (np.array([0, 6, 8], np.uint16), same())),
    *rows("RaggedBatch", partial(RaggedBatch, values=VALUES, offsets=(0, 6, 8)), "**",
        ({"shapes": [[2], [6]]}, "item 0 has shape (2,) but 6"), ({"shapes": [[8]]}, "need 2 offsets"),
        ({"values": np.zeros(0), "offsets": []}, "offsets [0]"), ({"offsets": [1, 8]}, "they must run from 0"),
        ({"offsets": [0, FAR, -FAR - 1, -1, 8]}, f"item 1 runs from {FAR}"),
        ({"offsets": [0, FAR, FAR + 1 - 2**64, 8], "shapes": [[FAR], [1], [2]]}, "item"),
        ({"values": np.array([None]), "offsets": [0, 1]}, "numbers"),
        ({"values": VALUES.repeat(2)[::2]}, "contiguous")),
    *rows("RaggedBatch[]", lambda index: IMAGES[index], "index",
        ("a", "the index of an item is one integer, found 'a'"),
        (True, "the index of an item is one integer, found True"),
        (torch(lambda t: t.tensor(True), "tensor(True)"), "found tensor(True)"),
        (2, Error(IndexError, "item 2 of a batch of 2")), (-3, Error(IndexError, "item -3 of a batch of 2")),
        (-1, same(index=1)), (np.uint8(1), same(index=1))),
    *rows("RaggedBatch.to_padded", padded, "fill",
        ("a", "float32 can't hold the fill value 'a'"), (None, "can't hold the fill value None"),
        ([1, 2], "can't hold the fill value [1, 2]"), (np.ones((20, 20)), "can't hold the fill value array("),
        (1e300, "float32 can't hold the fill value 1e+300"), (1j, "can't hold the fill value 1j"),
        (np.int8(3), same(fill=3.0))),
    *rows("RaggedBatch.to_padded", padded, "**",
        ({"fill": NAN, "batch": BYTES}, "uint8 can't hold the fill value nan"),
        ({"fill": 0.5, "batch": BYTES}, "can't hold the fill value"),
        ({"fill": 2, "batch": IMAGES.like(VALUES > 3)}, "bool can't hold the fill value")),
    *rows("RaggedBatch.like", IMAGES.like, "values",
        (None, "values is None"), (VALUES[:7], "values must be 8 like those of the batch, found 7"),
        (VALUES.reshape(2, 4), "values must be a flat, contiguous array")),
    *rows("RaggedBatch.to", IMAGES.to, "device",
        ("cpu", "to takes a batch of tensors, found values that are an ndarray")),
    *rows("RaggedBatch.pin_memory", IMAGES.pin_memory, "**", ({}, "pin_memory takes a batch of tensors")),
    *rows("RaggedBatch.to_arrow", missing("pyarrow", SEQUENCES.to_arrow), "**",
        ({}, Error(MissingPackageError, "pip install pyarrow"))),
    *rows("RaggedBatch.to_arrow", IMAGES.to_arrow, "**", ({}, "to_arrow needs items of one dimension")),
    *rows("RaggedBatch.to_torch", missing("torch", IMAGES.to_torch), "**",
        ({}, Error(MissingPackageError, "pip install torch"))),
    *rows("RaggedBatch.from_arrow", missing("pyarrow", RaggedBatch.from_arrow), "array",
        ([1, 2], Error(MissingPackageError, "pip install pyarrow"))),
    *rows("RaggedBatch.from_torch", missing("torch", RaggedBatch.from_torch), "nested",
        ([1, 2], Error(MissingPackageError, "pip install torch"))),
    *rows("RaggedBatch.from_torch", RaggedBatch.from_torch, "nested",
        (torch(lambda t: t.ones(3), "flat tensor"), "nested tensor"),
        (torch(lambda t: np.ones(3), "ndarray"), "nested tensor")),
]  # fmt: skip
