"""Study `mapping`: how a thread finds the item of its element."""

DATASET = "visdrone-val"
