"""The plainest version of each operation, in NumPy float64, which every fast version is checked against."""
