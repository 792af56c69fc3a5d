"""Tiles of a scene, judged by their brightness."""
