"""Study `arena`: what users would pick instead."""

DATASET = "visdrone-val"
CODE = ("baselines",)  # its methods are made by their names in `octopus_study.names`
