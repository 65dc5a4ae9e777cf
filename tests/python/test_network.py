"""A stereo network as engine of the matcher. Skipped without the packages onnx and onnxruntime."""

import sys
from pathlib import Path

import numpy as np
import pytest

import stereod

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
sys.path.append(str(Path(__file__).parents[1] / "networks"))


def test_a_network_is_an_engine(tmp_path):
    import make

    make.write(tmp_path)
    dots = np.random.default_rng(3).integers(0, 256, (96, 180), np.uint8)
    left, right = np.ascontiguousarray(dots[:, :160]), np.ascontiguousarray(dots[:, 11:171])
    for check in ["off", "sgm"]:
        engine = f"onnx:{tmp_path}/negative.onnx"
        matcher = stereod.Matcher(disparities=64, engine=engine, check=check, confidence=True)
        result = matcher(left, right)
        assert np.median(np.abs(result.disparity[:, 64:] - 11)) < 0.1
        sure = np.mean(result.confidence[:, 64:] > 200)
        assert sure > 0.9 if check == "sgm" else sure == 0
    with pytest.raises(Exception, match="classifier.onnx is no stereo network"):
        stereod.Matcher(engine=f"onnx:{tmp_path}/classifier.onnx")(left, right)
    with pytest.raises(ValueError, match="onnx:FILE"):
        stereod.Matcher(engine="onnx:")
