"""Operations on batches whose items all differ in size, each in one launch.

>>> import numpy as np
>>> from octopus import RaggedBatch, ops
>>> batch = RaggedBatch.from_list([np.ones((2, 3), np.float32), np.full((1, 2), 4, np.float32)])
>>> ops.multiply(batch, [10.0, 0.5], device="cpu").to_list()[1]
array([[2., 2.]], dtype=float32)

All take float32 or uint8 elements, on the host or on the GPU, and return a batch on the same side, of the same library.
Results are of the elements' dtype (uint8: rounded half to even and saturated), those of `normalize` float32. Parameters
are one number, or one per item. An `octopus.RaggedPlan` used again saves what is built here at each call.
"""

from octopus.ragged.ops import OPERATIONS, blur3x3, blur5x5_sobel, gamma, multiply, normalize, threshold

__all__ = ["OPERATIONS", "blur3x3", "blur5x5_sobel", "gamma", "multiply", "normalize", "threshold"]
