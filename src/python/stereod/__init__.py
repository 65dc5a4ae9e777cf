"""Stereo matching (Semi-Global Matching) on NVIDIA GPUs and CPUs.

>>> import stereod
>>> matcher = stereod.Matcher(disparities=128)
>>> d = matcher(left, right)            # uint8 arrays (H, W) of a rectified pair
>>> d.disparity                         # float32 (H, W) in pixels, NaN where unknown
"""

from ._libraries import prepare as _prepare

_prepare()

from ._native import (  # noqa: E402
    Batch,
    Calibration,
    CalibrationError,
    DeviceError,
    Disparity,
    Matcher,
    Pair,
    Pairs,
    Stream,
    __version__,
    open,
)
from ._native import INVALID_RAW as INVALID  # noqa: E402
from .opencv import (  # noqa: E402
    STEREO_SGBM_MODE_HH,
    STEREO_SGBM_MODE_HH4,
    STEREO_SGBM_MODE_SGBM,
    STEREO_SGBM_MODE_SGBM_3WAY,
    StereoMatcher_DISP_SCALE,
    StereoMatcher_DISP_SHIFT,
    StereoSGBM,
    StereoSGBM_create,
    StereoSGBM_MODE_HH,
    StereoSGBM_MODE_HH4,
    StereoSGBM_MODE_SGBM,
    StereoSGBM_MODE_SGBM_3WAY,
)

#: Numbers of `Disparity.status`. INVALID is the number of `Disparity.raw` that means unknown.
UNKNOWN, FILLED, SUPPORTED, MEASURED = 0, 1, 2, 3

__all__ = [
    "FILLED",
    "INVALID",
    "MEASURED",
    "STEREO_SGBM_MODE_HH",
    "STEREO_SGBM_MODE_HH4",
    "STEREO_SGBM_MODE_SGBM",
    "STEREO_SGBM_MODE_SGBM_3WAY",
    "SUPPORTED",
    "UNKNOWN",
    "Batch",
    "Calibration",
    "CalibrationError",
    "DeviceError",
    "Disparity",
    "Matcher",
    "Pair",
    "Pairs",
    "StereoMatcher_DISP_SCALE",
    "StereoMatcher_DISP_SHIFT",
    "StereoSGBM",
    "StereoSGBM_MODE_HH",
    "StereoSGBM_MODE_HH4",
    "StereoSGBM_MODE_SGBM",
    "StereoSGBM_MODE_SGBM_3WAY",
    "StereoSGBM_create",
    "Stream",
    "__version__",
    "open",
]
