"""Point clouds as plyfile, pypcd4 and laspy read them."""

import json

import laspy
import numpy as np
import pytest
from plyfile import PlyData
from pypcd4 import PointCloud

from conftest import stereod

RUN = ["run", "--demo", "--demo-size", "160x120", "--frames", 1, "--headless", "--engine", "cpu"]


def read(path):
    """Positions (N, 3), colours (N, 3), and standard deviations, if there are any."""
    if path.suffix == ".ply":
        vertex = PlyData.read(path)["vertex"]
        deviation = vertex["z_std"] if "z_std" in vertex else None
        return (np.stack([vertex[axis] for axis in "xyz"], 1),
                np.stack([vertex[colour] for colour in ("red", "green", "blue")], 1), deviation)
    if path.suffix == ".pcd":
        cloud = PointCloud.from_path(path)
        deviation = cloud.numpy(("z_std",))[:, 0] if "z_std" in cloud.fields else None
        return cloud.numpy(("x", "y", "z")), PointCloud.decode_rgb(cloud.numpy(("rgb",))), deviation
    file = laspy.read(path)
    assert str(file.header.version) == "1.2" and file.header.system_identifier == "stereod"
    # The colours have 16 bits.
    return np.asarray(file.xyz), np.stack([file.red, file.green, file.blue], 1) // 257, None


def clouds(folder, kind, *flags):
    out = folder / kind
    stereod(*RUN, "--clouds", out, "--clouds-format", kind, *flags, folder=folder)
    assert json.loads((out / "clouds.json").read_text())["format"] == kind
    return read(out / f"000000.{kind}")


@pytest.mark.parametrize("kind", ["pcd", "las"])
def test_all_formats_hold_the_same_points(tmp_path, kind):
    confident = ["--confidence", tmp_path / "confidence.mkv"]
    points, colours, deviation = clouds(tmp_path, "ply", *confident)
    assert len(points) > 10_000 and np.isfinite(deviation).mean() > 0.8
    others, their_colours, their_deviation = clouds(tmp_path, kind, *confident)
    np.testing.assert_allclose(others, points, atol=0.00006)
    np.testing.assert_array_equal(their_colours, colours)
    if kind == "pcd":
        np.testing.assert_array_equal(their_deviation, deviation)


def test_a_voxel_has_the_mean_of_its_points(tmp_path):
    points, colours, _ = clouds(tmp_path, "ply")
    cubes = np.floor(points.astype(float) / 0.2).astype(int)
    _, first, inverse = np.unique(cubes, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    means = np.stack([np.bincount(inverse, points[:, axis]) for axis in range(3)], 1)
    means /= np.bincount(inverse)[:, None]
    found, _, _ = clouds(tmp_path, "ply", "--voxel", 0.2)
    assert len(found) == len(means) < len(points) / 4
    np.testing.assert_allclose(found, means[np.argsort(first)], atol=1e-5)


def test_outliers_are_those_of_the_definition(tmp_path):
    """By brute force over the pixels of the depth images."""
    points, _, _ = clouds(tmp_path, "ply")
    stereod(*RUN, "--pictures", tmp_path / "depth", "--pictures-format", "npy", folder=tmp_path)
    grid = np.full((120, 160, 3), np.nan)
    known = np.isfinite(np.load(tmp_path / "depth" / "000000.npy"))
    known &= np.load(tmp_path / "depth" / "000000.npy") > 0
    grid[known] = points
    padded = np.pad(grid, ((3, 3), (3, 3), (0, 0)), constant_values=np.nan)
    offsets = [(dy, dx) for dy in range(7) for dx in range(7) if (dy, dx) != (3, 3)]
    others = [padded[dy : dy + 120, dx : dx + 160] for dy, dx in offsets]
    far = [np.maximum(np.linalg.norm(other, axis=2), np.linalg.norm(grid, axis=2)) for other in others]
    distances = np.stack([(np.linalg.norm(other - grid, axis=2) / most)[known] for other, most in zip(others, far)], 1)
    distances = np.sort(distances, axis=1)[:, :20]
    mean = np.nanmean(distances, axis=1)
    kept = points[mean <= mean.mean() + 2 * mean.std()]
    found, _, _ = clouds(tmp_path, "ply", "--outliers", 2)
    assert 0 < len(points) - len(kept) < len(points) / 10
    np.testing.assert_array_equal(found, kept)
