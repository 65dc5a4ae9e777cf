"""The examples of docs/python.md run, in their order."""

import re
import shutil

import numpy as np
import pytest

from conftest import ROOT, TEDDY

cv2 = pytest.importorskip("cv2")


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    if not TEDDY.exists():
        pytest.skip(f"{TEDDY} is not here")
    for name, copy in [("imL.png", "left.png"), ("imR.png", "right.png")]:
        shutil.copy(TEDDY / name, tmp_path / copy)
    for name in ["intrinsics.yml", "extrinsics.yml"]:
        shutil.copy(ROOT / "tests/calibrations" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S)
    assert len(blocks) >= 4
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {}
    for block in blocks:
        code = compile(block, "docs/python.md", "exec")
        if "import open3d" not in block:  # It opens a window.
            exec(code, names)
    assert names["d"].shape == (375, 450)
    assert 0.7 < names["sure"].mean() < 1 and 1 < np.nanmedian(names["z"]) < 10
    assert (cv2.imread("colours.png") > 0).any(axis=2).mean() > 0.8
    assert (tmp_path / "cloud.ply").stat().st_size > 1_000_000
    assert len(names["depths"]) == 3 and (tmp_path / "figure.png").stat().st_size > 10_000
    assert (names["disparity"] > 0).mean() > 0.8
    assert "Disparity(450x375" in capsys.readouterr().out
