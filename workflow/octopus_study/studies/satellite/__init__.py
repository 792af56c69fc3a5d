"""Study `satellite`: which tiles of a scene are worth the downlink."""
