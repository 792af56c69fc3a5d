"""Data sets: where they are, how they get here, and what the studies read from them.

``registry``        one row of ``config/datasets.tsv`` per data set
``fetch``           real data from the raw folder, a mirror or the network, else the generated sample
``manifest``         what was fetched, from where, and its digest
``*_source``        the ways to get each data set, over ``download`` and ``archive``
``visdrone``        annotations, the pool of boxes and the canonical frame
``sentinel2``       a band or a window of it, pixel digest
``synthetic``       the sample: a drone-like frame (``drone_scene``), a pool of boxes (``size_table``), a band
``distributions``   the published box generators, padding waste, satellite tiles
``video``           clips of the drone: detections per frame by the published rule, frames that pan
``workload``        the frame and the boxes that a study measures
"""
