"""Study `concurrency`: two models on one GPU."""

DATASET = "visdrone-val"
