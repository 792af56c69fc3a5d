"""Study `reading`: pages of text found, cut out and read by RapidOCR, as it is and with its inputs made by Octopus."""

from __future__ import annotations

from pydantic import Field

from octopus_study.sections import Count, Seconds, Section

DATASET = "visdrone-val"


class Reading(Section):
    """Pages with known text, from pixels to texts; and boxes cut to widths of their own."""

    pages: list[Count] = Field([1, 8], min_length=1, description="pages that are read one after the other")
    pages_cpu: list[Count] = Field([1], min_length=1, description="the same without a GPU, where a page takes seconds")
    size: tuple[Count, Count] = Field((1754, 1240), description="height and width of a page in pixels: A4 at 150 dpi")
    blocks: Count = Field(20, description="paired blocks of up to 8 pages, if there is time; of more pages fewer")
    crops: list[Count] = Field([100, 1000], min_length=1, description="boxes that are cut to one height, on a GPU")
    seconds: Seconds = Field(
        900.0, description="for each number of pages; slow pages get fewer blocks, or none, and slow ways are left out"
    )
