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


def corners(found: list[npt.NDArray[np.float32]]) -> stereod.Calibration:
    return stereod.Calibration.solve(found, found, board=(9, 6), square=0.03, size=(640, 480))[0]


def stacks(lefts: npt.NDArray[np.uint8], rights: list[npt.NDArray[np.uint8]]) -> npt.NDArray[np.float32]:
    batch = stereod.Matcher(disparities=64).batch(lefts, rights)
    return batch.disparity if len(batch) > 1 else batch[0].disparity


def path(left: npt.NDArray[np.uint8], right: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    rig = stereod.Calibration.of_rectified((640, 480), focal_px=500, baseline_m=0.1)
    result = stereod.Matcher(calibration=rig, odometry=True).next(left, right, 0.0)
    assert result.pose is not None and result.odometry is not None
    return result.pose


def wrong(left: npt.NDArray[np.uint8], sgbm: stereod.StereoSGBM) -> None:
    """Every line has a mistake; mypy reports an `ignore` that hides none."""
    stereod.Matcher(disparites=64)  # type: ignore[call-arg]
    stereod.Matcher(disparities=64.5)  # type: ignore[arg-type]
    stereod.Matcher(fit=30)  # type: ignore[call-arg]
    stereod.Matcher()(left)  # type: ignore[call-arg]
    stereod.Matcher().rightmap(left)  # type: ignore[attr-defined]
    stereod.StereoSGBM_create(numDisparites=64)  # type: ignore[call-arg]
    stereod.StereoSGBM_create(numDisparities="64")  # type: ignore[arg-type]
    stereod.StereoSGBM.create(0, 64, windowSize=5)  # type: ignore[call-arg]
    sgbm.setNumDisparites(64)  # type: ignore[attr-defined]
    sgbm.setNumDisparities(64.5)  # type: ignore[arg-type]
    sgbm.compute(left)  # type: ignore[call-arg]
    stereod.STEREO_SGBM_MODE_SGMB  # type: ignore[attr-defined]
