"""Study `arena`: what users would pick instead."""
