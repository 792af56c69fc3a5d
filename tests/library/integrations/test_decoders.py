"""Frames as video decoders hand them out: taken as they lie, and the crops are those of a copy."""

import re

import numpy as np
import pytest
from gpu import host

from octopus import NV12, P010, FrameStream, InputError, crop_resize
from octopus.crop.frame import frame_view

COUNT, HEIGHT, WIDTH = 5, 100, 150
BOXES = np.array([[0, 0, 150, 100], [3, 5, 40, 90], [10.5, 3.25, 70.75, 60.5]], np.float32)
INDEX = [2, 0, 1]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FINE = 5e-3  # between devices, as in test_options


def pixels(count=COUNT):
    return np.random.default_rng(0).integers(0, 256, (count, HEIGHT, WIDTH, 3), np.uint8)


def crops(frame, device="cpu", **options):
    return host(crop_resize(frame, BOXES, (24, 32), device=device, **options))


@pytest.fixture
def file(tmp_path):
    """A video of a few frames, by whichever library can write one."""
    path = str(tmp_path / "video.avi")
    cv2 = pytest.importorskip("cv2", reason="OpenCV, which writes the video, is not installed")
    writer = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*"MJPG"), 25, (WIDTH, HEIGHT))
    for picture in pixels():
        writer.write(picture)
    writer.release()
    return path


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_of_torchcodecs_layouts(device):
    """NHWC, and NCHW that is a permuted view of it, whole, in part, and one frame: nothing is copied."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    stored = torch.from_numpy(pixels()).to(device)
    nchw = stored.permute(0, 3, 1, 2)
    for batch, first in ((stored, 0), (nchw.permute(0, 2, 3, 1), 0), (nchw[1::2].permute(0, 2, 3, 1), 1)):
        index = [0, 1, 0] if first else INDEX
        right = crops(batch.cpu().numpy().copy(), frame_index=index)
        assert frame_view(batch).pointer == stored[first].data_ptr()
        assert np.abs(crops(batch, device, frame_index=index) - right).max() < FINE
    one = nchw[3].permute(1, 2, 0)
    assert frame_view(one).pointer == stored[3].data_ptr()
    assert np.abs(crops(one, device) - crops(pixels()[3])).max() < FINE


@pytest.mark.parametrize("device", DEVICES)
def test_channels_first_are_read_where_they_lie_on_the_host_alone(device):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    stored = torch.from_numpy(pixels()).to(device)
    nchw = stored.permute(0, 3, 1, 2)
    assert frame_view(nchw).pointer == stored.data_ptr()
    for frame, index, right in ((nchw, INDEX, stored), (nchw[0], None, stored[0])):
        if device == "cpu":
            assert (crops(frame, device, frame_index=index) == crops(right, device, frame_index=index)).all()
        else:
            with pytest.raises(InputError, match="the channels of a frame come last"):
                crops(frame, device, frame_index=index)


def video_decoder(path, **options):
    decoders = pytest.importorskip("torchcodec.decoders", reason="TorchCodec is not installed")
    try:
        return decoders.VideoDecoder(path, **options)
    except RuntimeError as error:
        if "Could not load libtorchcodec" not in str(error):
            raise
        pytest.skip("TorchCodec finds no FFmpeg")


def test_frames_of_torchcodec(file):
    """A frame, some of them, a range: in both orders of dimensions, and into the buffers of a stream."""
    last, first = video_decoder(file, dimension_order="NHWC"), video_decoder(file)
    right = last[:].numpy().copy()
    assert right.shape == (COUNT, HEIGHT, WIDTH, 3) and right.std() > 20
    given = {
        "NHWC": (last[:], last.get_frames_at([0, 1, 2]).data),
        "NCHW": tuple(batch.permute(0, 2, 3, 1) for batch in (first[:], first.get_frames_at([0, 1, 2]).data)),
    }
    for batches in given.values():
        for batch in batches:
            assert batch.is_contiguous() and frame_view(batch).pointer == batch.data_ptr()
            assert np.array_equal(crops(batch, frame_index=INDEX), crops(right, frame_index=INDEX))
    for one in (last[3], first[3].permute(1, 2, 0), last.get_frame_at(3).data):
        assert np.array_equal(crops(one), crops(right[3]))
    stream = FrameStream(last[0], 3, (24, 32), device="cpu")
    for number, frame in enumerate(last):
        stream.buffer()[...] = frame
        assert np.array_equal(stream.submit(BOXES), crops(right[number]))
    with pytest.raises(InputError, match="the channels of a frame come last"):
        crops(first[0])
    with pytest.raises(InputError, match="frame is a FrameBatch; pass"):
        crops(last.get_frames_at([0]))


@pytest.mark.parametrize(("form", "name"), [(NV12, "nv12"), (P010, "p010le")])
def test_planes_of_pyav(file, form, name):
    """They offer DLPack and have no shape; FFmpeg pads their rows."""
    av = pytest.importorskip("av", reason="PyAV is not installed")
    coding = {"matrix": "bt601", "range": "full"}
    with av.open(file) as container:
        frames = [frame.reformat(format=name) for frame in container.decode(video=0)]
    assert len(frames) == COUNT
    for frame in frames:
        y, uv = map(np.from_dlpack, frame.planes)
        assert y.shape == (HEIGHT, WIDTH) and y.strides[0] > WIDTH * y.itemsize and y.std() > 10
        taken = form(*frame.planes, **coding)
        assert frame_view(taken).pointer == y.ctypes.data
        copied = form(y.copy(), uv.copy(), **coding)
        assert np.array_equal(crops(taken), crops(copied)) and f"{WIDTH}x{HEIGHT}" in repr(taken)


PACKAGES = ["cv2", "av", "torchcodec"]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page(root, tmp_path, monkeypatch, package):
    """Its examples run, those of each decoder by themselves behind the first, which writes a file by OpenCV."""
    page = (root / "docs/integrations/video.md").read_text()
    first, *others = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    mine = [block for block in others if f"{package}." in block]
    assert mine and "cv2.VideoWriter" in first
    assert all(sum(f"{name}." in block for name in PACKAGES) == 1 for block in others)
    for needed in {"cv2", package} | ({"torch"} if "torch" in "".join(mine) else set()):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(first, names)
    if package == "torchcodec":
        video_decoder("video.avi")
    exec("\n".join(mine), names)
