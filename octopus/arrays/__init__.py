"""Arrays of any library: what lies where, on which stream, and after whose work."""
