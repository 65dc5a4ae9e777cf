"""Networks as the prior of matching: they say where bare surfaces are."""

import json

import numpy as np
import pytest
from PIL import Image
from test_networks import HEIGHT, WIDTH, folder, stereod  # noqa: F401

# Where the network `liar` says 12 px, without its borders.
RECTANGLE = np.s_[HEIGHT // 4 + 12 : HEIGHT // 2 - 12, WIDTH * 2 // 5 + 12 : WIDTH * 7 // 10 - 12]


@pytest.fixture(scope="module")
def wall(folder):  # noqa: F811
    """A pair of dots at 6 px with a wall of one grey level."""
    dots = np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH + 6), np.uint8)
    for name, first in ("left", 0), ("right", 6):
        view = dots[:, first : first + WIDTH].copy()
        view[20:200, 110:350] = 120
        Image.fromarray(view).save(folder / f"wall_{name}.png")
    return folder


def match(folder, *arguments, **others):  # noqa: F811
    told, log = stereod(folder, "match", "wall_left.png", "wall_right.png", "-o", "wall.npy", "-d", "48",
                        "--evidence", "off", "--json", *arguments, **others)
    return np.load(folder / "wall.npy"), told, log


@pytest.mark.parametrize("size", ["1", "1/2"])
def test_a_network_says_where_bare_walls_are(wall, size):
    alone, _, _ = match(wall)
    guided, told, log = match(wall, "--prior", "onnx:liar.onnx", "--prior-size", size, "--verify")
    # 12 px, whatever the size of the network's images.
    expected = 12 if size == "1" else 24
    assert np.nanmean(np.abs(guided[RECTANGLE] - expected) < 1) > 0.75
    assert np.nanmean(np.abs(alone[RECTANGLE] - expected) < 1) < 0.2
    # The dots stay what they are.
    assert np.nanmean(np.abs(guided[210:] - alone[210:]) < 0.5) > 0.97
    assert "network liar.onnx: two inputs of 0..255 values" in log
    assert "prior of the network liar.onnx" in json.loads(told)["engine"]
    by_key, _, _ = match(wall, "--set", "engine.prior_from=onnx:liar.onnx", "--set", f"engine.prior_size={size}",
                         "--tiles", "off")
    np.testing.assert_array_equal(by_key, guided)


def test_networks_of_a_fixed_size_tell_their_seams(wall):
    _, _, log = match(wall, "--prior", "onnx:fixed.onnx")
    assert "tiles of" in log and "two sides differ by" in log


def test_the_network_of_the_program_needs_no_file(wall):
    plain, _, _ = match(wall)
    guided, told, _ = match(wall, "--prior", "network", "--verify", "--threads", "1", "--nice", "5")
    assert "prior of the network, cells of 4x4 px" in json.loads(told)["engine"]
    assert np.isfinite(guided).mean() > 0.9 and not np.array_equal(guided, plain, equal_nan=True)
    for arguments in ["--set", "engine.simd=portable"], ["--set", "matching.prior=network"]:
        again, _, _ = match(wall, "--prior", "network", *arguments)
        np.testing.assert_array_equal(again, guided)
    _, log = stereod(wall, "match", "wall_left.png", "wall_right.png", "-o", "x.npy", "--prior", "network", "--memory",
                     "1", status=1)
    assert "memory" in log or "MiB" in log


def test_a_stream_and_tiles_have_the_prior(wall):
    match(wall, "--prior", "onnx:liar.onnx", "--tiles", "2x1,64", "--verify")
    told, _ = stereod(wall, "run", "--demo", "--demo-size", "320x240", "--frames", "3", "--headless", "--stats", "s.json",
                      "--prior", "onnx:lite.onnx", "--prior-size", "1")
    statistics = json.loads((wall / "s.json").read_text())
    assert statistics["pairs"] == 3, told
    stereod(wall, "bench", "--size", "320x240", "-d", "32", "--repeat", "1", "--verify", "--prior", "onnx:lite.onnx")


def test_what_has_no_prior_is_told(wall):
    def refused(*arguments, status=2):
        return stereod(wall, "match", "wall_left.png", "wall_right.png", "-o", "x.npy", *arguments, status=status)[1]

    assert "takes no prior" in refused("--engine", "onnx:lite.onnx", "--prior", "onnx:lite.onnx")
    assert "needs --prior 1 to 3" in refused("--cost", "sad", "--prior", "onnx:lite.onnx")
    assert "there is no network nowhere.onnx" in refused("--prior", "onnx:nowhere.onnx", status=1)
    assert "half-size" in refused("--prior-from", "cnn:lite.onnx")
    assert "--prior" in refused("--prior", "onnx")
    _, log = stereod(wall, "match", "wall_left.png", "wall_right.png", "-o", "x.npy", "--prior-size", "1")
    assert "--prior-size is ignored" in log
    stereod(wall, "run", "--demo", "--frames", "1", "--headless", "--fit", "5", "--prior", "onnx:lite.onnx", status=1)
    before = (wall / "lite.onnx").read_bytes()
    stereod(wall, "run", "--demo", "--frames", "1", "--headless", "--prior", "onnx:lite.onnx", "--stats", "lite.onnx",
            status=2)
    assert (wall / "lite.onnx").read_bytes() == before
