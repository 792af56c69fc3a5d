"""Study `pipelines`: whole pipelines before and after one import is changed."""

DATASET = "visdrone-val"
