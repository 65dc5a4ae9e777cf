"""Maps for benchmarks as OpenCV reads them, and OpenCV's row of a comparison."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from conftest import ENVIRONMENT, PROGRAM, generated, stereod

cv2 = pytest.importorskip("cv2")


def test_opencv_reads_the_submissions(tmp_path):
    (left, right), *_ = generated()
    for name, image in [("image_2", left), ("image_3", right)]:
        (tmp_path / "testing" / name).mkdir(parents=True)
        Image.fromarray(image).save(tmp_path / "testing" / name / "000000_10.png")
    scene = tmp_path / "two_view_test" / "wall"
    scene.mkdir(parents=True)
    for name, image in [("im0", left), ("im1", right)]:
        Image.fromarray(image).save(scene / f"{name}.png")
    usual = ["--fill", "rays", "--fill-max", 1023, "--engine", "cpu", "--repeat", 1, "-d", 32]
    stereod("evaluate", "testing", "--submission", "kitti", "-o", "up", *usual, folder=tmp_path)
    stereod("evaluate", "two_view_test", "--submission", "eth3d", "-o", "up", *usual, folder=tmp_path)
    kitti = cv2.imread(str(tmp_path / "up/disp_0/000000_10.png"), cv2.IMREAD_UNCHANGED)
    assert kitti.dtype == np.uint16 and (kitti > 0).all()
    eth3d = cv2.imread(str(tmp_path / "up/low_res_two_view/wall.pfm"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(kitti / np.float32(256), eth3d)
    assert abs(np.median(eth3d) - 6) < 0.1


def test_opencvs_row_is_what_opencv_finds(tmp_path):
    left, right = generated(width=256)[2]
    for name, image in [("l", left), ("r", right), ("t", np.full_like(left, 8))]:
        Image.fromarray(image).save(tmp_path / f"{name}.png")
    item = {"left": "l.png", "right": "r.png", "gt": "t.png", "gt_scale": 1, "ndisp": 20}
    (tmp_path / "item.json").write_text(json.dumps(item))
    # This Python is the one that is found.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "bin" / "python3").chmod(0o755)
    command = [PROGRAM, "evaluate", "item.json", "--compare", "opencv", "--json", "-", "--repeat", "1"]
    environment = ENVIRONMENT | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    ours, theirs = json.loads(done.stdout)["comparison"]
    assert theirs["settings"] == f"OpenCV {cv2.__version__} StereoSGBM"
    matcher = cv2.StereoSGBM_create(
        minDisparity=0, numDisparities=32, blockSize=5, P1=200, P2=800, preFilterCap=63, disp12MaxDiff=1,
        uniquenessRatio=10, speckleWindowSize=100, speckleRange=2, mode=cv2.STEREO_SGBM_MODE_HH)
    disparity = matcher.compute(left, right) / 16
    figures = theirs["mean"]["unfilled"]["all"]
    assert figures["density"] == round(100 * float((disparity >= 0).mean()), 4)
    assert figures["bad1.0_valid"] == round(100 * float((np.abs(disparity[disparity >= 0] - 8) > 1).mean()), 4)
    assert theirs["mean"]["time_ms"] > 0 and ours["settings"] == "stereod"
