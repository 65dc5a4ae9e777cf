"""A program that mypy checks: the types that a user meets."""

import numpy as np
import numpy.typing as npt

import stereod


def depth(left: npt.NDArray[np.uint8], right: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    rig = stereod.Calibration("left.yaml", "right.yaml", size=(640, 480))
    matcher = stereod.Matcher(calibration=rig, disparities=128, cost="census", engine="cpu")
    result = matcher(left, right)
    confidence = result.confidence
    assert confidence is not None
    return np.where(confidence > 204, result.depth(), np.float32(np.nan))


def opencv(left: npt.NDArray[np.uint8], right: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    return stereod.StereoSGBM_create(numDisparities=64, engine="cpu").compute(left, right)
