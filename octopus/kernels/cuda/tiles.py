"""How the fused kernel cuts an item into blocks; read at launch, so it imports no compiler."""

from __future__ import annotations

ROWS = 16  # output rows per block: 8 starts over too often, 28 and more leave too few blocks (measured on an H200)
MAX_COLUMNS = 256  # threads per block at most, one per output column
