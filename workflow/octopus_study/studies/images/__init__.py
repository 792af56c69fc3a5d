"""Study `images`: images of any size on their way into a model."""

DATASET = "visdrone-val"
