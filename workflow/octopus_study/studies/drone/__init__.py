"""Study `drone`: the crops of a video's detections, frame by frame."""

DATASET = "visdrone-val"
