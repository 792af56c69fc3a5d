"""How tables are made: specifications, cells, writers, and the tables that no study owns."""
