"""The Python of docs/recipes.md, on files that the program writes."""

import re
from pathlib import Path

import numpy as np
import pytest

from conftest import stereod

cv2 = pytest.importorskip("cv2")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"


def test_the_python_of_the_page_reads_the_files(tmp_path, monkeypatch):
    page = PAGE.read_text()
    commands = re.search(r"```sh\n(.*?)```", page, re.S)[1].splitlines()
    for command in commands:
        stereod(*command.split()[1:], "--demo-size", "160x120", "--frames", 3, folder=tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    frames, disparity, depth = names["frames"], names["disparity"], names["depth"]
    assert [frame.shape for frame in frames] == [(120, 160)] * 3
    np.testing.assert_array_equal(frames[0], disparity)
    # The scene's focal length is 0.9 times the width, and its baseline 63 / focal length.
    known = np.isfinite(disparity) & (disparity > 0)
    assert known.mean() > 0.6
    # Floats have no steps of 1/16 px.
    assert np.abs(63 / depth[known] - disparity[known]).max() < 1 / 32
    assert names["points"].shape == (np.isfinite(depth).sum(), 3)
    # It sees 58 degrees.
    x, y, z = names["points"].T
    assert (np.abs(x) < 0.56 * z).all() and (np.abs(y) < 0.56 * z).all() and (z > 0).all()
