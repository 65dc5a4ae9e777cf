"""The drop-in for cv2.StereoSGBM, and both programs on real pictures."""

import logging
import os
import subprocess

import numpy as np
import pytest

import stereod
from stereod import opencv

cv2 = pytest.importorskip("cv2")


def test_the_form_is_opencvs(teddy):
    left, right = teddy
    arguments = (0, 64, 5, 200, 800, 1, 0, 10, 100, 2)
    theirs = cv2.StereoSGBM_create(*arguments).compute(left, right)
    ours = stereod.StereoSGBM_create(*arguments, engine="cpu").compute(left, right)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert ours.min() == theirs.min() == -16
    both = (ours >= 0) & (theirs >= 0)
    assert (abs(ours - theirs)[both] <= 16).mean() > 0.9
    points = cv2.reprojectImageTo3D(ours.astype(np.float32) / 16, np.eye(4))
    assert points.shape == (*ours.shape, 3)


def test_smallest_disparity_and_given_array(teddy):
    left, right = teddy
    out = np.zeros(left.shape[:2], np.int16)
    matcher = stereod.StereoSGBM_create(minDisparity=8, numDisparities=48, engine="cpu")
    assert matcher.compute(left, right, out) is out
    assert out.min() == 7 * 16


def test_every_setter_has_its_getter(caplog):
    ours, theirs = stereod.StereoSGBM_create(), cv2.StereoSGBM_create()
    names = [name[3:] for name in dir(theirs) if name.startswith("set")]
    assert len(names) == 11
    opencv._told.clear()
    for name in names:
        assert getattr(ours, f"get{name}")() == getattr(theirs, f"get{name}")(), name
    with caplog.at_level(logging.INFO, "stereod"):
        for value in (3, 5):
            for name in names:
                getattr(ours, f"set{name}")(value)
                assert getattr(ours, f"get{name}")() == value
    assert len(caplog.records) == len(opencv._IGNORED)


def test_wrong_values_are_named(teddy):
    for arguments, text in [
        ({"numDisparities": 0}, "numDisparities is 0"),
        ({"mode": 9}, "mode is 9"),
    ]:
        with pytest.raises(ValueError, match=text):
            stereod.StereoSGBM_create(**arguments).compute(*teddy)


SETTINGS = [
    {},
    {"cost": "census"},
    {"cost": "ad", "paths": 8},
    {"cost": "sad", "paths": 0, "cost_window": 0, "prior": 0},
    {"cost": "mi", "disparities": 48},
    {"paths": 5, "median": 5},
    {"subpixel": "parabola", "uniqueness": 15},
    {"fill": "rays", "left_right": "off"},
    {"min_confidence": 64},
    {"p1": 8, "p2": 60, "p2_mode": "fixed"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_the_bytes_are_the_programs(teddy, tmp_path, settings, engine):
    program = os.environ.get("STEREOD_TEST_PROGRAM")
    if not program:
        pytest.skip("STEREOD_TEST_PROGRAM names no stereod to compare with")
    left, right = teddy
    settings = {"disparities": 64, **settings}
    try:
        ours = stereod.Matcher(engine=engine, channels="bgr", **settings)(left, right)
    except stereod.DeviceError as error:
        pytest.skip(str(error))
    ours.write_png(tmp_path / "ours.png")
    for name, image in (("left.png", left), ("right.png", right)):
        cv2.imwrite(str(tmp_path / name), image)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = [program, "match", "left.png", "right.png", "-o", "theirs.png"]
    subprocess.run([*command, "--engine", engine, *flags], cwd=tmp_path, check=True)
    theirs = cv2.imread(str(tmp_path / "theirs.png"), cv2.IMREAD_UNCHANGED)
    assert (cv2.imread(str(tmp_path / "ours.png"), cv2.IMREAD_UNCHANGED) == theirs).all()
    assert theirs.any()
