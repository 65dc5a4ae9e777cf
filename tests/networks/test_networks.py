"""Networks of our own making as engine of the program: how they are fed is found, and matching finds where they lie."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import make

PROGRAM = os.environ["STEREOD_TEST_PROGRAM"]
WIDTH, HEIGHT = 416, 288

# What the program says of each network: inputs, values, output.
FOUND = {
    "stacked_grey": "one input of 0..1 values; it gives the disparity",
    "stacked_rgb": "one input of 0..1 values; it gives the disparity",
    "four_inputs": "four inputs of 0..255 values; it gives the disparity",
    "negative": "two inputs of 0..255 values; it gives minus the disparity",
    "imagenet": "two inputs of ImageNet's values; it gives the disparity",
    "fixed": "two inputs of 0..255 values; it gives the disparity",
    "lite": "two inputs of 0..255 values; it gives the disparity",
    "multiple_of_32": "two inputs of 0..255 values; it gives the disparity",
    "normalised": "two inputs of -1..1 values; it gives the disparity as a share of the width",
    "swapped": "two inputs of 0..255 values, the right view first; it gives the disparity",
    "two_outputs": "two inputs of 0..255 values; it gives the disparity",
    "half": "two inputs of 0..255 values; it gives the disparity",
    "red_first": "two inputs of 0..255 values; it gives the disparity",
    "red_last": "two inputs of 0..1 values, blue before red; it gives the disparity",
}

REFUSED = {
    "any_rank": "left is no picture",
    "classifier": "no stereo network",
    "constant": "does not find depth",
    "damaged": "no network that ONNX Runtime runs",
    "depth": "no stereo network",
    "double": "holds neither 32- nor 16-bit floats",
    "nan": "no output has the size of the views and numbers in it",
    "not_onnx": "no network that ONNX Runtime runs",
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The networks, and a pair of three planes with its disparity: random dots, which block matchers like."""
    folder = tmp_path_factory.mktemp("networks")
    make.write(folder)
    dots = np.random.default_rng(4).integers(0, 256, (HEIGHT, WIDTH + 64), np.uint8)
    truth = np.full((HEIGHT, WIDTH), 6)
    truth[80:200, 120:300] = 15
    truth[200:, 200:] = 30
    columns = np.arange(WIDTH)
    right = dots[:, 32 : 32 + WIDTH]
    left = np.take_along_axis(dots, columns - truth + 32, axis=1)
    noise = np.random.default_rng(5)
    for name, view in {"left": left, "right": right}.items():
        Image.fromarray(view).save(folder / f"{name}.png")
        others = noise.integers(0, 256, (2, HEIGHT, WIDTH), np.uint8)
        Image.fromarray(np.dstack([view, *others])).save(folder / f"red_{name}.png")
    np.save(folder / "truth.npy", truth)
    return folder


def stereod(folder, *arguments, status=0, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "VIRTUAL_ENV": sys.prefix} | variables
    done = subprocess.run(
        [PROGRAM, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def match(folder, name, *arguments, **others):
    return stereod(folder, "match", "left.png", "right.png", "-o", f"{name}.npy", "-d", "64", "--engine",
                   f"onnx:{name}.onnx", *arguments, **others)


@pytest.mark.parametrize("name", FOUND)
def test_a_network_is_fed_as_it_wants(folder, name):
    _, told = match(folder, name)
    assert f"network {name}.onnx: {FOUND[name]};" in told
    disparity, truth = np.load(folder / f"{name}.npy"), np.load(folder / "truth.npy")
    # Beyond the left edge and next to the planes' edges the right view lacks the partner.
    error = np.abs(disparity - truth)[:, 64:]
    assert np.mean(error > 1) < 0.08
    assert ("tiles of" in told) == (name == "fixed")
    if name == "fixed":
        seam = told.split("two sides differ by ")[1].split()[0]
        assert float(seam) < 0.5


@pytest.mark.parametrize("name", ["red_first", "red_last"])
def test_networks_of_three_channels_get_the_colours(folder, name):
    """Only red of these views shows the planes; green and blue are noise."""
    common = ["-d", "64", "--engine", f"onnx:{name}.onnx"]
    stereod(folder, "match", "red_left.png", "red_right.png", "-o", f"{name}.npy", *common)
    stereod(folder, "run", "--left", "red_left.png", "--right", "red_right.png", "--headless", "--pictures", name,
            "--pictures-format", "npy", *common)
    found = [folder / f"{name}.npy", *(folder / name).glob("*.npy")]
    assert len(found) == 2
    for file in found:
        error = np.abs(np.load(file) - np.load(folder / "truth.npy"))[:, 64:]
        assert np.mean(error > 1) < 0.08, file


@pytest.mark.parametrize("name", REFUSED)
def test_other_files_are_refused_with_the_reason(folder, name):
    _, told = match(folder, name, status=1)
    assert REFUSED[name] in told and f"{name}.onnx" in told
    assert not (folder / f"{name}.npy").exists()


def test_the_way_is_kept_for_the_file(folder):
    stereod(folder, "match", "left.png", "right.png", "-o", "x.npy", "--engine", "onnx:negative.onnx",
            XDG_CACHE_HOME=str(folder / "fresh"))
    kept = list((folder / "fresh").rglob("*.cubin"))
    assert len(kept) == 1
    content = json.loads(kept[0].read_bytes()[80:])
    assert content["negative"] and content["multiple"] == 32
    # Damaged, it is found anew.
    kept[0].write_bytes(b"x")
    match(folder, "negative", XDG_CACHE_HOME=str(folder / "fresh"))
    assert json.loads(kept[0].read_bytes()[80:]) == content


def test_a_lie_is_found(folder):
    told, _ = match(folder, "liar", "--check", "sgm", "--verdicts", "verdicts.png", "--confidence", "sure.png", "--json")
    verdicts = np.asarray(Image.open(folder / "verdicts.png"))
    sure = np.asarray(Image.open(folder / "sure.png"))
    contradict, agree = ([213, 94, 0] == verdicts).all(2), ([0, 158, 115] == verdicts).all(2)
    lie = np.zeros((HEIGHT, WIDTH), bool)
    lie[HEIGHT // 4 + 2 : HEIGHT // 2 - 2, WIDTH * 2 // 5 + 2 : WIDTH * 7 // 10 - 2] = True
    # Where matching is sure of what the planes are, all of the lie is told.
    assert contradict[lie].mean() > 0.99
    assert contradict[~lie].mean() < 0.12 and agree[~lie].mean() > 0.75
    assert sure[lie & contradict].max() == 1 and sure[agree].mean() > 200
    shares = json.loads(told)["verdicts"]
    assert abs(shares["contradict"] - 100 * contradict.mean()) < 0.01
    assert abs(shares["agree"] - 100 * agree.mean()) < 0.01


def test_only_confirmed_pixels_are_kept_on_request(folder):
    match(folder, "liar", "--check", "sgm", "--verdicts", "verdicts.png", "--min-confidence", "50")
    agree = ([0, 158, 115] == np.asarray(Image.open(folder / "verdicts.png"))).all(2)
    known = np.isfinite(np.load(folder / "liar.npy"))
    assert known[~agree].sum() == 0 and known[agree].mean() > 0.9


def test_a_network_is_no_output(folder):
    before = (folder / "lite.onnx").read_bytes()
    stereod(folder, "run", "--demo", "--frames", "1", "--headless", "--engine", "onnx:lite.onnx",
            "--stats", "./lite.onnx", status=2)
    assert (folder / "lite.onnx").read_bytes() == before


def test_a_run_records_the_verdicts(folder):
    stereod(folder, "run", "--demo", "--demo-size", "320x224", "--frames", "3", "--headless", "--engine",
            "onnx:liar.onnx", "--check", "sgm", "-d", "64", "--record", "map.mkv", "--verdicts", "verdicts.mkv",
            "--confidence", "sure.mkv", "--stats", "stats.json")
    stats = json.loads((folder / "stats.json").read_text())
    assert stats["written"] == {"recording": 3, "confidence": 3, "verdicts": 3}
    assert stats["verdicts"]["contradict"] > 2
    assert sum(stats["verdicts"].values()) == pytest.approx(100, abs=0.05)
    assert "network liar.onnx (ONNX Runtime, CPU, checked on" in stats["engine"]


def test_what_a_network_cannot_do_is_told(folder):
    def refused(*arguments, status=2):
        return stereod(folder, *arguments, status=status)[1]

    pair = ["match", "left.png", "right.png", "-o", "y.npy"]
    network = ["--engine", "onnx:lite.onnx"]
    assert "--verify" in refused(*pair, *network, "--verify")
    assert "--check sgm" in refused(*pair, *network, "--verdicts", "v.png")
    assert "`onnx:FILE`" in refused(*pair, "--engine", "onxx:lite.onnx")
    assert "no network missing.onnx" in refused(*pair, "--engine", "onnx:missing.onnx", status=1)
    assert "--p1 is ignored" in stereod(folder, *pair, *network, "--p1", "9")[1]
    assert "--check is ignored" in stereod(folder, *pair, "--check", "sgm")[1]
    nowhere = {"ORT_DYLIB_PATH": str(Path(folder) / "none.so")}
    told = stereod(folder, *pair, *network, status=1, **nowhere)[1]
    assert "ORT_DYLIB_PATH" in told and "none.so" in told
    bare = {"VIRTUAL_ENV": "", "HOME": str(folder), "CONDA_PREFIX": ""}
    assert "pip install onnxruntime" in stereod(folder, *pair, *network, status=1, **bare)[1]


def test_the_list_of_networks_is_for_people_and_programs(folder):
    told, _ = stereod(folder, "models")
    networks = json.loads(stereod(folder, "models", "--json")[0])
    described = json.loads(stereod(folder, "models", "negative.onnx", "--json")[0])
    assert described["convention"] == FOUND["negative"] and described["wrong"] < 30
    assert "left (" in stereod(folder, "models", "negative.onnx")[0]
    assert len(networks) > 5 and all(network["name"] in told and network["licence"] in told for network in networks)
