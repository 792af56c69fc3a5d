"""Study `arena`: what users would pick instead."""

DATASET = "visdrone-val"
CODE = ("methods.py", "peers")  # its methods are made by their names in that table
