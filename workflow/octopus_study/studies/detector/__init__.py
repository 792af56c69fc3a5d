"""Study `detector`: detection end to end, prepared on the CPU or by Octopus."""

DATASET = "visdrone-val"
