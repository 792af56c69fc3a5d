"""Frames of video as FFmpeg's swscale converts them, through PyAV, for the parity table."""

from __future__ import annotations

from dataclasses import replace

import av
import numpy as np
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob
from octopus_study.studies.parity import inputs, opencv

# Each pixel takes the chroma of its 2 x 2, is computed by itself, and rounded: without the last two swscale takes
# tables that are up to three levels off.
FLAGS = Interpolation.POINT | Interpolation.FULL_CHR_H_INT | Interpolation.ACCURATE_RND


def of_nv12(job: CropJob) -> NDArray[np.float32]:
    """The frame in uint8, then `opencv.exact`; (N, height, width, 3)."""
    coded = av.VideoFrame.from_ndarray(np.concatenate(inputs.planes(job)), format="nv12")
    colours = {f"{end}_colorspace": "ITU601" for end in ("src", "dst")}
    ranges = {"src_color_range": "MPEG", "dst_color_range": "JPEG"}
    frame = VideoReformatter().reformat(coded, format="rgb24", interpolation=FLAGS, **colours, **ranges)
    return opencv.exact(replace(job, frame=frame.to_ndarray()))
