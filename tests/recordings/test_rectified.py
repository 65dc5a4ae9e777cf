"""Rectified images and videos in colour, compared with OpenCV's."""

import json

import numpy as np
import pytest

from conftest import stereod

cv2 = pytest.importorskip("cv2")

SIZE = (160, 120)
RIG = {
    "image_size": SIZE,
    "K1": [[130, 0, 78], [0, 130, 59], [0, 0, 1]], "D1": [-0.2, 0.05, 0.001, -0.001, 0],
    "K2": [[131, 0, 80], [0, 131, 60], [0, 0, 1]], "D2": [-0.21, 0.06, 0, 0, 0],
    "R": [[0.99980001, 0, 0.01999867], [0, 1, 0], [-0.01999867, 0, 0.99980001]],
    "T": [-0.1, 0.002, 0.001],
}


def scene(seed):
    """Smooth colours, so that a 1/32 px of difference, the step of cv2.remap, is little."""
    noise = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), np.uint8)
    return cv2.resize(noise, SIZE, interpolation=cv2.INTER_CUBIC)


def write_rig(folder):
    """Writes the cameras, rectified by OpenCV, and returns its maps for both views."""
    rig = {key: np.array(value, float) for key, value in RIG.items() if key != "image_size"}
    rig["T"] = rig["T"].reshape(3, 1)
    lenses = [rig["K1"], rig["D1"], rig["K2"], rig["D2"]]
    turns = cv2.stereoRectify(*lenses, SIZE, rig["R"], rig["T"], alpha=0)[:4]
    found = dict(zip(["R1", "R2", "P1", "P2"], turns, strict=True))
    written = RIG | {key: value.tolist() for key, value in found.items()}
    (folder / "rig.json").write_text(json.dumps(written))
    return [cv2.initUndistortRectifyMap(rig[f"K{n}"], rig[f"D{n}"], found[f"R{n}"], found[f"P{n}"], SIZE, cv2.CV_32FC1)
            for n in (1, 2)]


def remapped(maps, raw):
    """Both views as OpenCV rectifies them, and where it has seen something: it fades out at the border."""
    for image, (x, y) in zip(raw, maps, strict=True):
        is_seen = (x >= 0) & (x <= SIZE[0] - 1) & (y >= 0) & (y <= SIZE[1] - 1)
        yield cv2.remap(image, x, y, cv2.INTER_LINEAR), is_seen


def same(found, expected, most):
    image, is_seen = expected
    assert found.shape == image.shape and is_seen.mean() > 0.9
    difference = np.abs(found.astype(int) - image)[is_seen]
    assert difference.max() <= most, difference.max()


def test_images_are_those_of_cv2_remap(tmp_path):
    maps = write_rig(tmp_path)
    raw = [scene(1), scene(2)]
    for name, image in zip("lr", raw, strict=True):
        cv2.imwrite(str(tmp_path / f"{name}.png"), image)
    stereod("rectify", "l.png", "r.png", "--calibration", "rig.json", "-o", "out", folder=tmp_path)
    for view, expected in zip(["left", "right"], remapped(maps, raw), strict=True):
        same(cv2.imread(str(tmp_path / "out" / f"{view}.png"), cv2.IMREAD_UNCHANGED), expected, 2)


def test_opencv_plays_the_videos(tmp_path):
    maps = write_rig(tmp_path)
    raw = [[scene(10 + number), scene(20 + number)] for number in range(4)]
    for number, pair in enumerate(raw):
        for name, image in zip("lr", pair, strict=True):
            cv2.imwrite(str(tmp_path / f"{name}{number:02}.png"), image)
    stereod("rectify", "l%02d.png", "r%02d.png", "--calibration", "rig.json", "-o", "out", folder=tmp_path)
    videos = [cv2.VideoCapture(str(tmp_path / "out" / f"{view}.mkv")) for view in ["left", "right"]]
    for pair in raw:
        for video, expected in zip(videos, remapped(maps, pair), strict=True):
            is_read, frame = video.read()
            # 2 levels by luma and differences, and 2 as above.
            assert is_read
            same(frame, expected, 4)
    assert not any(video.read()[0] for video in videos)
