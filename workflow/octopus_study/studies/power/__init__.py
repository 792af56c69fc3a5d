"""Study `power`: what a batch costs in energy."""

DATASET = "visdrone-val"
