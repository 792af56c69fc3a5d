"""Stand-ins for what other packages do; each module is imported by its user alone, and nothing here imports them."""
