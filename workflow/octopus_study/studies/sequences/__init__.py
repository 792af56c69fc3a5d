"""Study `sequences`: ragged sequences against padding."""

DATASET = "visdrone-val"
