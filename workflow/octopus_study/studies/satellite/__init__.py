"""Study `satellite`: which tiles of a scene are worth the downlink."""

DATASET = "sentinel2-b04"
