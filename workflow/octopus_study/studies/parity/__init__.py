"""Study `parity`: how far the results lie from those of other libraries."""

DATASET = "visdrone-val"
