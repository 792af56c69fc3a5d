"""The contenders of the comparisons, one file each. All of them turn a `CropJob` into the same array."""
