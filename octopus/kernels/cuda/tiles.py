"""How the fused kernel cuts an item into blocks; read at launch, so it imports no compiler."""

from __future__ import annotations

ROWS = 12  # output rows per block; see the list of versions in `crop`
MAX_COLUMNS = 256  # threads per block at most, one per output column
