"""Who works on which element of a ragged batch: four strategies under one interface.

======================  =============================================  ======================  ======================
strategy                what it stores                                 what an element costs   known from
======================  =============================================  ======================  ======================
`lookup` (A)            the item of every element, int32               4 bytes read            a table
`thread_search` (B)     offsets                                        a search per thread     grid-stride kernels
`block_metadata` (C)    item and start of every block                  nothing                 DALI until 2022
`block_search` (D)      offsets                                        a search per block      DALI since 2022
======================  =============================================  ======================  ======================

The names in the last column are public systems that find their work in this way, for other data. Octopus uses D unless
it is told otherwise: it has nothing to build and is the only one that needs no host copy of the offsets.

>>> from octopus import blockmap
>>> blockmap.build("lookup", [0, 1, 3]).owner.tolist()
[0, 1, 1]
"""

from octopus.ragged.blockmap import (
    DEFAULT,
    DEFAULT_THRESHOLD,
    PUBLISHED_THRESHOLD,
    STRATEGIES,
    BlockMap,
    Strategy,
    build,
)

__all__ = ["DEFAULT", "DEFAULT_THRESHOLD", "PUBLISHED_THRESHOLD", "STRATEGIES", "BlockMap", "Strategy", "build"]
