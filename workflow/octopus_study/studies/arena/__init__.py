"""Study `arena`: what users would pick instead."""

DATASET = "visdrone-val"
