"""Study `parity`: how far the results lie from those of other libraries."""

DATASET = "visdrone-val"
CODE = ("methods.py", "peers")  # its methods are made by their names in that table
