"""Calibrations of the Python package, beside OpenCV."""

import pickle

import numpy as np
import pytest

import stereod
from conftest import ROOT

cv2 = pytest.importorskip("cv2")
FILES = ROOT / "tests/calibrations"


def rig():
    return stereod.Calibration(FILES / "intrinsics.yml", FILES / "extrinsics.yml", size=(640, 480))


def test_rectification_is_opencvs():
    inner = cv2.FileStorage(str(FILES / "intrinsics.yml"), cv2.FILE_STORAGE_READ)
    outer = cv2.FileStorage(str(FILES / "extrinsics.yml"), cv2.FILE_STORAGE_READ)
    image = np.random.default_rng(3).integers(0, 256, (48, 64), dtype=np.uint8)
    image = cv2.resize(image, (640, 480), interpolation=cv2.INTER_CUBIC)
    rectified = rig().rectify(image, image)
    for number, ours in enumerate(rectified, 1):
        camera, lens = inner.getNode(f"M{number}").mat(), inner.getNode(f"D{number}").mat()
        turned, onto = outer.getNode(f"R{number}").mat(), outer.getNode(f"P{number}").mat()
        maps = cv2.initUndistortRectifyMap(camera, lens, turned, onto, (640, 480), cv2.CV_32FC1)
        theirs = cv2.remap(image, *maps, cv2.INTER_LINEAR)
        inside = theirs > 0
        assert np.percentile(abs(ours[inside].astype(int) - theirs[inside]), 99) <= 4


def test_depth_and_points_are_those_of_q(scene):
    left, right, _ = scene
    d = stereod.Matcher(engine="cpu", disparities=32)(left, right)
    own = rig()
    points = cv2.reprojectImageTo3D(d.disparity, own.Q)
    known = ~np.isnan(d.disparity)
    assert np.allclose(d.points(own)[known], points[known], rtol=1e-4)
    assert np.allclose(d.depth(own)[known], points[known][:, 2], rtol=1e-4)
    assert np.isnan(d.depth(own)[~known]).all()
    with pytest.raises(ValueError, match="needs cameras"):
        d.depth()


def test_a_matcher_with_a_calibration_takes_raw_pairs():
    own = rig()
    image = np.random.default_rng(5).integers(0, 256, (480, 640), dtype=np.uint8)
    d = stereod.Matcher(calibration=own, engine="cpu", disparities=16)(image, image)
    assert (d.left == own.rectify(image, image)[0]).all()
    assert d.depth().shape == d.shape
    with pytest.raises(ValueError, match="the calibration is for 640x480|made for 640x480"):
        stereod.Matcher(calibration=own, engine="cpu")(image[:100], image[:100])


def test_files_are_written_and_read(tmp_path):
    own = rig()
    for name in ["a.toml", "a.yml", "a.xml", "a.json"]:
        own.write(tmp_path / name)
        again = stereod.Calibration(tmp_path / name)
        assert again.size == (640, 480)
        assert np.allclose(again.Q, own.Q, rtol=1e-6)
    read = cv2.FileStorage(str(tmp_path / "a.yml"), cv2.FILE_STORAGE_READ)
    assert not read.getNode("T").empty() or not read.getNode("P2").empty()
    assert np.allclose(pickle.loads(pickle.dumps(own)).Q, own.Q)
    with pytest.raises(stereod.CalibrationError, match="name does not say the format"):
        own.write(tmp_path / "a.txt")


def test_what_is_no_calibration(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("[left\n")
    with pytest.raises(stereod.CalibrationError, match="broken.toml:[12]: "):
        stereod.Calibration(broken)
    with pytest.raises(stereod.CalibrationError, match="cannot be read"):
        stereod.Calibration(tmp_path / "none.yml")
    with pytest.raises(TypeError, match="one file or two"):
        stereod.Calibration()


def test_solving_finds_the_cameras():
    focal, baseline, size, board, square = 500.0, 0.12, (640, 480), (9, 6), 0.03
    camera = np.array([[focal, 0, 320], [0, focal, 240], [0, 0, 1]])
    grid = np.zeros((54, 3))
    grid[:, :2] = np.mgrid[0:9, 0:6].T.reshape(-1, 2) * square
    rng, left, right = np.random.default_rng(2), [], []
    for _ in range(14):
        turn = rng.uniform(-0.5, 0.5, 3)
        place = np.array([rng.uniform(-0.2, 0.05), rng.uniform(-0.15, 0), rng.uniform(0.5, 0.9)])
        for views, shift in ((left, 0), (right, baseline)):
            seen, _ = cv2.projectPoints(grid, turn, place - [shift, 0, 0], camera, None)
            views.append(seen[:, 0] + rng.normal(0, 0.05, (54, 2)))
    solved, rms = stereod.Calibration.solve(left, right, board=board, square=square, size=size)
    assert rms < 0.12
    assert abs(solved.baseline_m - baseline) < 0.001
    assert abs(solved.focal_px - focal) < 10
    with pytest.raises(ValueError, match="view 0 has 10 corners, but the board has 54"):
        stereod.Calibration.solve([left[0][:10]], [right[0]], board=board, square=square, size=size)
