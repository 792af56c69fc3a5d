"""Boxes of frames, cut out, resized and normalised into one batch."""
