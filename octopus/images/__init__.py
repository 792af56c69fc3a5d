"""Images of different size, resized in one launch."""
