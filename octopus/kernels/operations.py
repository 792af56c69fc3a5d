"""The operations on ragged batches by name, and what plans and kernels must know of each; imports no compiler."""

from typing import TypeVar

Dtype = TypeVar("Dtype")

POINTWISE = ("multiply", "normalize", "threshold", "gamma")
STENCILS = ("blur3x3", "blur5x5_sobel")  # read a pixel's neighbours within its image
OPERATIONS = (*POINTWISE, *STENCILS)  # the CPU's kernels know an operation by its place in here
PARAMETERS = {"multiply": 1, "normalize": 2, "threshold": 1, "gamma": 1, "blur3x3": 0, "blur5x5_sobel": 0}


def result_dtype(operation: str, dtype: Dtype) -> Dtype | str:
    """The results' dtype for elements of a dtype: the same, but for `normalize`, whose values no byte holds."""
    return "float32" if operation == "normalize" else dtype
