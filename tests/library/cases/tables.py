"""All tables of cases."""

from cases import crops, images, ragged, tiles, varied

TABLES = {module.__name__.partition(".")[2]: module.CASES for module in (crops, varied, images, ragged, tiles)}
ALL = [(table, name) for table, cases in TABLES.items() for name in cases]
