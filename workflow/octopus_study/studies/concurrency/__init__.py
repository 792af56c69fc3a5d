"""Study `concurrency`: two models on one GPU, and crops beside a model."""

DATASET = "visdrone-val"
