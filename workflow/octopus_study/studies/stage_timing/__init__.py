"""Study `stage_timing`: where the time of one batch goes."""

DATASET = "visdrone-val"
