"""Files of `stereod match`, read by the libraries of other programs."""

import os
import subprocess

import cv2
import numpy as np
import OpenEXR
import pytest
import tifffile

PROGRAM = os.environ.get("STEREOD_TEST_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no program was named")


@pytest.fixture
def matched(scene, tmp_path):
    """Matches the scene into files of these names; returns the disparity in pixels (NaN: unknown)."""
    for name, image in zip(("left.png", "right.png"), scene[:2]):
        cv2.imwrite(str(tmp_path / name), image)

    def run(name, *flags):
        subprocess.run(
            [PROGRAM, "match", "left.png", "right.png", "--disparities", "32", "--engine", "cpu", "-o", name, *flags],
            cwd=tmp_path, check=True, capture_output=True, timeout=60,
        )
        return str(tmp_path / name)

    stored = cv2.imread(run("disparity.png"), cv2.IMREAD_UNCHANGED)
    assert stored.dtype == np.uint16
    run.disparity = np.where(stored == 0, np.nan, stored / 256)
    return run


def test_floats_are_the_disparity_of_the_png(matched):
    expected = matched.disparity
    for name, read in [("d.tiff", tifffile.imread), ("d.npy", np.load), ("d.pfm", lambda path: cv2.imread(path, cv2.IMREAD_UNCHANGED))]:
        floats = read(matched(name))
        assert floats.dtype == np.float32 and floats.shape == expected.shape, name
        known = np.isfinite(floats)
        assert (known == ~np.isnan(expected)).all(), name
        # Without the steps of 1/16 px; a disparity of 0 is stored as 1/256 px in the PNG.
        assert (np.round(16 * floats[known]) == np.round(16 * expected[known])).all(), name
        assert (floats[known] * 16 % 1 != 0).mean() > 0.3, name
    assert np.isnan(tifffile.imread(matched("d.tif"))[np.isnan(expected)]).all()


def test_depth_is_in_metres(matched):
    cameras = ["--depth", "--focal", "100", "--baseline", "0.5"]
    metres = np.load(matched("depth.npy", *cameras))
    disparity = np.load(matched("d.npy"))
    known = ~np.isnan(disparity) & (disparity > 1)
    assert np.allclose(metres[known], 50 / disparity[known], rtol=1e-6)
    assert (tifffile.imread(matched("depth.tiff", *cameras))[known] == metres[known]).all()


def test_exr_has_channels_for_compositing(matched):
    path = matched("d.exr", "--focal", "100", "--baseline", "0.5")
    with OpenEXR.File(path, separate_channels=True) as file:
        channels = {name: channel.pixels for name, channel in file.channels().items()}
    assert sorted(channels) == ["Z", "Z_std", "confidence", "disparity"]
    unknown = np.isnan(matched.disparity)
    assert (channels["disparity"][unknown] == 0).all() and np.isinf(channels["Z"][unknown]).all()
    assert (channels["confidence"][unknown] == 0).all() and channels["confidence"].max() <= 1
    disparity = np.load(matched("d.npy"))
    known = ~unknown & (disparity > 1)
    assert (channels["disparity"][known] == disparity[known]).all()
    assert np.allclose(channels["Z"][known], 50 / disparity[known], rtol=1e-6)
    sure = known & (channels["confidence"] > 1.5 / 255)
    pixels = 0.68 - 0.41 * channels["confidence"]
    assert sure.any() and np.allclose(channels["Z_std"][sure], (channels["Z"] ** 2 / 50 * pixels)[sure], rtol=1e-5)
