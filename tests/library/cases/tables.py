"""All tables of cases."""

from cases import crops, images, ragged, tiles, varied

TABLES = {
    "crops": crops.CASES,
    "varied": varied.CASES,
    "images": images.CASES,
    "ragged": ragged.CASES,
    "tiles": tiles.CASES,
}
ALL = [(table, name) for table, cases in TABLES.items() for name in cases]
