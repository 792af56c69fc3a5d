"""Study `scaling`: crops and ragged images on all GPUs of one host."""

DATASET = "visdrone-val"
