"""Study `pipelines`: pipelines that people have, with their own package and with Octopus in its place.

Images into a vision-language model (`model`), crops of a detector's boxes for a second network (`crops`), and a folder
of images read by a DataLoader (`loader`). All is timed from where the pipeline has
its data to where its next step takes them, by the host's clock. What a package can't do here is a row.
"""

from collections.abc import Iterator

from octopus_study.studies.comparison import Part
from octopus_study.studies.context import Context
from octopus_study.studies.pipelines import crops, loader, model


def plan(context: Context) -> Iterator[Part]:
    """Every pipeline's parts."""
    for pipeline in (model, crops, loader):
        yield from pipeline.parts(context)
