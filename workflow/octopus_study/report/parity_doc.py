"""``docs/parity.md``: how near the answers are to those of other libraries, from the committed references."""

from __future__ import annotations

from pathlib import Path

from octopus_study.report.build import derive_all
from octopus_study.report.frame import Frame
from octopus_study.report.runs import load_runs
from octopus_study.report.studies.parity import PARITY
from octopus_study.report.tables.spec import build
from octopus_study.report.tables.writers import markdown

_HEAD = """\
# Parity with other libraries

<!-- Written by `octopus report parity` from data/reference. Do not edit. -->

Libraries differ in where they put a pixel's centre, in what they read beyond the edge of a box, and in how they round.
Each row below names a setting under which Octopus and another library should agree, and how far they are apart.

| Setting | Options of `crop_resize` | The same elsewhere |
| :--- | :--- | :--- |
| float32, edge of the box | the defaults | OpenCV and PyTorch on the float32 crop; CV-CUDA on a view; DALI on a slice |
| float32, edge of the image | `edge="image"` | torchvision's `roi_align`, aligned, one sample; DALI on a region |
| uint8, edge of the box | `dtype="uint8"` | OpenCV and CV-CUDA on the uint8 crop |
| Antialiased | `antialias=True` | PIL, PyTorch and torchvision on the float32 crop |
| Antialiased, uint8 | `antialias=True, dtype="uint8"` | PIL on the uint8 crop |
| Letterbox | `letterbox=True` | OpenCV's `resize` and `copyMakeBorder`, with the sizes of Ultralytics' `LetterBox` |
| bfloat16 | `dtype="bfloat16"` | PyTorch on the float32 crop, rounded |
| Nearest pixel | `filter="nearest"` | OpenCV's `INTER_NEAREST_EXACT`, PyTorch's "nearest-exact", PIL; ties differ |
| Bicubic | `filter="bicubic"` | OpenCV's `INTER_CUBIC` and PyTorch on the float32 crop |
| Affine maps | boxes (N, 2, 3) | OpenCV's `warpAffine` with `WARP_INVERSE_MAP`; the definition in float64 |
| Video, NV12 | `NV12` as the frame | OpenCV's and FFmpeg's conversion, rounded to uint8; the definition in float64 |
| Video, P010 | `P010` as the frame | the definition in float64 |

Differences are those of the boxes that the tables name; those of other boxes differ. Where in a box a pixel is read is
computed in float32, so that the largest difference grows with the box's side. Boxes are read as float32, too: where
their corners have fractions, it also grows with the distance from the frame's corner. Both are fractions of a pixel,
times the step from one pixel to the next: noise shows most of them, smooth pictures least.

"""
_NOTHING = (
    "No reference machine has a run of the study `parity` yet. `octopus measure parity` makes one, and "
    "`octopus report promote` commits it.\n"
)


def parity_doc(reference_dir: str | Path) -> str:
    """Return the page; a library that is missing on a machine is named with the reason.

    Parameters
    ----------
    reference_dir : path
        ``data/reference``.
    """
    runs = [run for run in load_runs(None, reference_dir) if run.study == PARITY.study]
    if not runs:
        return _HEAD + _NOTHING
    return _HEAD + markdown(build(PARITY, Frame(derive_all(runs))))
