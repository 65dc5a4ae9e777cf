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
    own = stereod.Calibration.of_rectified(
        left.shape[::-1], focal_px=210.5, baseline_m=0.11, centre_px=(90.25, 70)
    )
    points = cv2.reprojectImageTo3D(d.disparity, own.Q)
    known = ~np.isnan(d.disparity)
    assert np.allclose(d.points(own)[known], points[known], rtol=1e-4)
    assert np.allclose(d.depth(own)[known], points[known][:, 2], rtol=1e-4)
    assert np.isnan(d.depth(own)[~known]).all()
    with pytest.raises(ValueError, match="needs cameras"):
        d.depth()
    for method in (d.depth, d.depth_std, d.points, lambda rig: d.write_ply("none.ply", rig)):
        with pytest.raises(ValueError, match="rig is for rectified images of 640x480.*200x120"):
            method(rig())


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
    with pytest.raises(ValueError, match="centre_px"):
        stereod.Calibration.of_rectified((8, 8), focal_px=1, baseline_m=1, centre_px=(np.nan, 0))
    with pytest.raises(TypeError, match="one file or two"):
        stereod.Calibration()
    for wrong in [3, None, ["a.toml"]]:
        with pytest.raises(TypeError, match="^files is .*; expected one file or two, by their names$"):
            stereod.Calibration(wrong)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"size": 640}, TypeError),
        ({"size": (640, "480")}, TypeError),
        ({"size": (-640, 480)}, OverflowError),
        ({"focal_px": "500"}, TypeError),
        ({"focal_px": -1}, ValueError),
        ({"focal_px": np.nan}, ValueError),
        ({"baseline_m": None}, TypeError),
        ({"baseline_m": 0}, ValueError),
        ({"centre_px": 3}, TypeError),
    ],
)
def test_a_wrong_argument_is_named(changed, error):
    given = {"size": (640, 480), "focal_px": 500, "baseline_m": 0.1, **changed}
    with pytest.raises(error, match=f"{next(iter(changed))}`? is .*; expected"):
        stereod.Calibration.of_rectified(**given)
    if "size" in changed:
        with pytest.raises(error, match="^size is .*; expected"):
            stereod.Calibration(FILES / "intrinsics.yml", FILES / "extrinsics.yml", **changed)
    with pytest.raises(ValueError, match="0x480"):
        stereod.Calibration.of_rectified((0, 480), focal_px=1, baseline_m=1)


def test_cameras_of_opencv_are_taken_and_handed_back():
    inner = cv2.FileStorage(str(FILES / "intrinsics.yml"), cv2.FILE_STORAGE_READ)
    outer = cv2.FileStorage(str(FILES / "extrinsics.yml"), cv2.FILE_STORAGE_READ)
    given = [inner.getNode(name).mat() for name in ("M1", "D1", "M2", "D2")]
    given += [outer.getNode(name).mat() for name in ("R", "T")]
    size = (640, 480)
    own = stereod.Calibration.of_cameras(*given, size)
    for name, matrix in zip(("K1", "D1", "K2", "D2", "R", "T"), given):
        ours = getattr(own, name)
        known = ours[:, : matrix.shape[1]] if name.startswith("D") else ours
        assert known.shape == matrix.shape and np.allclose(known, matrix, atol=1e-6), name
    # The same rectification as OpenCV's, to be used with its functions.
    r1, r2, p1, p2, q, *_ = cv2.stereoRectify(*given[:4], size, *given[4:], alpha=0)
    for name, theirs in [("R1", r1), ("R2", r2), ("P1", p1), ("P2", p2), ("Q", q)]:
        assert np.allclose(getattr(own, name), theirs, rtol=1e-4, atol=1e-4), name
    assert own.size == own.rectified_size == size and own.notes == []
    lists = [matrix.ravel().tolist() if matrix.size != 9 else matrix.tolist() for matrix in given]
    assert stereod.Calibration.of_cameras(*lists, size).to_toml() == own.to_toml()


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"K1": np.eye(4)}, ValueError, r"K1 has the shape \[4, 4\]; expected \[3, 3\]"),
        ({"K2": np.ones((3, 3))}, ValueError, "K2 is .*; a camera matrix is"),
        ({"D1": np.zeros((2, 2))}, ValueError, "D1 has the shape .*; expected a row or a column"),
        ({"D2": np.zeros(7)}, ValueError, "D2 has 7 distortion coefficients"),
        ({"D1": "none"}, ValueError, "D1 is no array of numbers"),
        ({"R": 2 * np.eye(3)}, ValueError, "no rotation matrix"),
        ({"T": np.zeros(2)}, ValueError, "T has 2 numbers"),
        ({"T": [0.1, 0, 0]}, ValueError, "left and right are swapped.*exchange the left"),
        ({"fisheye": True}, ValueError, r"D1 has 5 distortion.*fisheye lens has 4"),
    ],
)
def test_wrong_matrices_are_named(changes, error, text):
    camera = [[500, 0, 320], [0, 500, 240], [0, 0, 1]]
    given = {"K1": camera, "D1": np.ones(5) / 99, "K2": camera, "D2": np.ones(5) / 99}
    given |= {"R": np.eye(3), "T": [-0.1, 0, 0], "size": (640, 480)}
    stereod.Calibration.of_cameras(**given)
    with pytest.raises(error, match=text):
        stereod.Calibration.of_cameras(**given | changes)


def test_a_long_baseline_is_noted():
    camera = [[500, 0, 320], [0, 500, 240], [0, 0, 1]]
    own = stereod.Calibration.of_cameras(camera, [0] * 5, camera, [0] * 5, np.eye(3), [-3, 0, 0], (640, 480))
    assert len(own.notes) == 1 and "T is in metres; divide one in mm by 1000" in own.notes[0]


def corners_of_a_board():
    """Corners of 14 pairs as (N, 2), and the arguments of `solve`."""
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
            views.append(seen.reshape(-1, 2) + rng.normal(0, 0.05, (54, 2)))
    return left, right, {"board": board, "square": square, "size": size}


def test_solving_finds_the_cameras():
    left, right, given = corners_of_a_board()
    solved, rms = stereod.Calibration.solve(left, right, **given)
    assert rms < 0.12
    assert abs(solved.baseline_m - 0.12) < 0.001
    assert abs(solved.focal_px - 500) < 10


def test_corners_come_in_every_form_of_opencv():
    left, right, given = corners_of_a_board()
    single = [[view.astype(np.float32) for view in views] for views in (left, right)]
    expected = stereod.Calibration.solve(*single, **given)
    for form in [
        lambda views: [view[:, None] for view in views],  # OpenCV 4
        lambda views: [view[None] for view in views],
        lambda views: [view.astype(np.float64) for view in views],
        lambda views: [view.tolist() for view in views],
        lambda views: np.array(views),
        lambda views: np.array(views)[:, :, None],
        lambda views: tuple(np.asfortranarray(view) for view in views),
        lambda views: (view for view in views),
    ]:
        solved = stereod.Calibration.solve(*map(form, single), **given)
        assert (solved[1], solved[0].to_toml()) == (expected[1], expected[0].to_toml())


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda view: view[:10], "view 0 has 10 corners, but the board has 54"),
        (lambda view: None, r"left\[0\] is None, because no board was found"),
        (lambda view: np.dstack([view, view]), r"left\[0\] has the shape \[54, 2, 2\]"),
        (lambda view: view[0], r"left\[0\] has the shape \[2\]"),
        (lambda view: [[1, 2], [3]], r"left\[0\] is no array of numbers"),
        (lambda view: view * np.nan, "view 0 has a corner that is no number"),
    ],
)
def test_wrong_corners_are_named(wrong, text):
    left, right, given = corners_of_a_board()
    with pytest.raises(ValueError, match=text):
        stereod.Calibration.solve([wrong(left[0]), *left[1:]], right, **given)


def test_corners_that_opencv_found():
    size, (columns, rows) = (500, 400), (9, 6)
    image = np.full(size[::-1], 255, np.uint8)
    for x in range(columns + 1):
        for y in range(rows + 1):
            if (x + y) % 2:
                image[40 + y * 40 : 80 + y * 40, 40 + x * 40 : 80 + x * 40] = 0
    found, corners = cv2.findChessboardCorners(image, (columns, rows))
    assert found
    # One view from the front determines no camera.
    with pytest.raises(stereod.CalibrationError):
        stereod.Calibration.solve([corners], [corners], board=(9, 6), square=0.03, size=size)
