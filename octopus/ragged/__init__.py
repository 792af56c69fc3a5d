"""Batches whose items differ in size, in one flat buffer, and operations on all of them."""
