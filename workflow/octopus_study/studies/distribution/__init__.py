"""Study `distribution`: what the distribution of box sizes costs."""

DATASET = "visdrone-val"
