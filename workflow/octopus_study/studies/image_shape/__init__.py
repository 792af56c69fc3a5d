"""Study `image_shape`: memory and time of image models by the shape of their input."""

DATASET = "visdrone-val"
