"""Depth aligned to a third camera, compared with OpenCV's projection, by the calibration of a real device."""

import json

import numpy as np
import pytest
from PIL import Image

from conftest import DATA, stereod

cv2 = pytest.importorskip("cv2")

OAKD = DATA / "oakd_patio"
if not OAKD.is_dir():
    pytest.skip(f"{OAKD} is not here", allow_module_level=True)
COLOUR, LEFT, RIGHT = 0, 1, 2


def cameras():
    """Matrix, coefficients, size and pose to the next socket in metres, by socket."""
    found = {}
    for socket, camera in json.loads((OAKD / "calib.json").read_text())["cameraData"]:
        pose = camera["extrinsics"]
        place = np.array([pose["translation"][axis] for axis in "xyz"]) / 100
        size = camera["width"], camera["height"]
        lens = np.array(camera["distortionCoeff"])
        found[socket] = np.array(camera["intrinsicMatrix"]), lens, size, np.array(pose["rotationMatrix"]), place
    return found


def expected(depth):
    """Depth in the colour camera's frame and its pixel, of every known pixel of the rectified depth."""
    device = cameras()
    (k1, d1, size, r12, t12), (k2, d2, _, r20, t20), (k0, d0, *_) = device[LEFT], device[RIGHT], device[COLOUR]
    turn, _, p1, *_ = cv2.stereoRectify(k1, d1, k2, d2, size, r12, t12.reshape(3, 1), alpha=0)
    y, x = np.nonzero(np.isfinite(depth))
    z = depth[y, x].astype(float)
    rectified = np.stack([(x - p1[0, 2]) / p1[0, 0] * z, (y - p1[1, 2]) / p1[1, 1] * z, z], 1)
    points = ((rectified @ turn) @ r12.T + t12) @ r20.T + t20
    pixels, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), k0, d0)
    return points[:, 2], pixels[:, 0]


def check(depth, aligned):
    z, pixels = expected(depth)
    height, width = aligned.shape
    x, y = np.rint(pixels).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    z, seen = z[inside], aligned[y[inside], x[inside]]
    assert len(z) > 100_000
    # The image has 1.9 times the pixels per degree, so each point is seen unless a nearer one hides it.
    assert np.isfinite(seen).all() and (seen <= z * (1 + 1e-5)).all()
    assert (np.abs(seen - z) <= 1e-5 * z).mean() > 0.9
    # Every depth comes from a point near its pixel.
    nearest = np.full(aligned.shape, np.inf)
    np.minimum.at(nearest, (y[inside], x[inside]), z)
    least = cv2.erode(nearest, np.ones((5, 5)))
    known = np.isfinite(aligned)
    # Points beyond the border may cover pixels at it.
    known[[0, 1, -2, -1]] = known[:, [0, 1, -2, -1]] = False
    assert (aligned[known] >= least[known] * (1 - 1e-5)).all()


def test_depth_of_a_pair_and_of_a_run(tmp_path):
    calibration = OAKD / "calib.json"
    rig = ["--calibration", calibration, "--align", calibration, "-d", 64, "--engine", "cpu"]
    videos = ["--left", OAKD / "left.mp4", "--right", OAKD / "right.mp4"]
    stereod("run", *videos, *rig, "--frames", "300..301", "--headless", "--depth", "--depth-unit", 0.5,
            "--pictures", "maps", "--pictures-format", "npy", "--aligned", "aligned.mkv", folder=tmp_path)
    depth = np.load(tmp_path / "maps/000300.npy")
    video = cv2.VideoCapture(str(tmp_path / "aligned.mkv"), cv2.CAP_FFMPEG)
    assert video.set(cv2.CAP_PROP_CONVERT_RGB, 0)
    stored = video.read()[1]
    assert stored.shape[:2] == (1080, 1920) and stored.dtype == np.uint16

    for view in "left", "right":
        capture = cv2.VideoCapture(str(OAKD / f"{view}.mp4"))
        capture.set(cv2.CAP_PROP_POS_FRAMES, 300)
        Image.fromarray(cv2.cvtColor(capture.read()[1], cv2.COLOR_BGR2GRAY)).save(tmp_path / f"{view}.png")
    pair = ["match", "left.png", "right.png", *rig]
    stereod(*pair, "--depth", "-o", "depth.npy", "--aligned", "aligned.npy", folder=tmp_path)
    aligned = np.load(tmp_path / "aligned.npy")
    assert aligned.shape == (1080, 1920)
    check(np.load(tmp_path / "depth.npy"), aligned)
    stereod(*pair, "-o", "d.png", "--aligned", "aligned.png", "--depth-unit", 0.5, folder=tmp_path)
    png = np.asarray(Image.open(tmp_path / "aligned.png")).astype(float)
    # 16 bits of half millimetres reach 32.7 m. A half may be rounded to either side.
    fits = aligned < 32.767
    assert fits.mean() > 0.8 and np.abs(png - aligned * 2000.0)[fits].max() <= 0.501
    assert (png[np.isnan(aligned) | (aligned > 32.768)] == 0).all()

    of_run = np.where(stored > 0, stored / 2000.0, np.inf).reshape(1080, 1920)
    z, pixels = expected(depth)
    x, y = np.rint(pixels).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < 1920) & (y < 1080) & (z < 32)
    assert (of_run[y[inside], x[inside]] <= z[inside] + 0.0003).all()


def test_what_is_missing_is_named(tmp_path):
    calibration = OAKD / "calib.json"
    for view in "left", "right":
        Image.fromarray(np.zeros((800, 1280), np.uint8)).save(tmp_path / f"{view}.png")
    pair = ["match", "left.png", "right.png", "-o", "d.png", "--aligned", "a.png"]
    _, error = stereod(*pair, "--calibration", calibration, folder=tmp_path, status=2)
    assert "--align FILE" in error
    _, error = stereod(*pair, "--align", calibration, folder=tmp_path, status=2)
    assert "--calibration FILE" in error
    stereo = OAKD / "stereo_opencv.json"
    _, error = stereod(*pair, "--calibration", stereo, "--align", "a.png", folder=tmp_path, status=2)
    assert "a.png" in error
    _, error = stereod("run", "--demo", "--headless", "--align", calibration, folder=tmp_path, status=2)
    assert "--aligned OUT.mkv" in error
