"""Study `total_cost`: what a batch costs from setup to download."""

DATASET = "visdrone-val"
