"""How figures are drawn: style, palette, and the marks that several of them share."""
