"""Study `parity`: how far the results lie from those of other libraries."""

DATASET = "visdrone-val"
CODE = ("peers",)  # its methods are made by their names in `octopus_study.names`
