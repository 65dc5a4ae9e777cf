"""A drop-in for `cv2.StereoSGBM`: the same calls, matched by stereod.

The results have OpenCV's form (int16, 16 times the disparity, `(minDisparity - 1) * 16` where it is
unknown), so `cv2.reprojectImageTo3D` and existing code work unchanged. They are not OpenCV's numbers:
costs, penalties and filters are stereod's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._native import INVALID_RAW, Matcher

STEREO_SGBM_MODE_SGBM = 0
STEREO_SGBM_MODE_HH = 1
STEREO_SGBM_MODE_SGBM_3WAY = 2
STEREO_SGBM_MODE_HH4 = 3

_log = logging.getLogger("stereod")

#: OpenCV's modes choose the number of paths.
_MODES = range(4)

_NAMES = (
    "minDisparity",
    "numDisparities",
    "blockSize",
    "P1",
    "P2",
    "disp12MaxDiff",
    "preFilterCap",
    "uniquenessRatio",
    "speckleWindowSize",
    "speckleRange",
    "mode",
)

#: OpenCV's parameters without a counterpart, and why that is no loss.
_IGNORED = {
    "blockSize": "the window follows the texture",
    "P1": "penalties suit the cost",
    "P2": "penalties suit the cost",
    "preFilterCap": "the cost needs no pre-filter",
    "mode": "the number of paths suits the cost; paths=8 sets it",
}

_told: set[str] = set()


class StereoSGBM:
    """Matches rectified pairs like `cv2.StereoSGBM`. Made by `StereoSGBM_create`."""

    def __init__(self, values: dict[str, int], extra: dict[str, Any]) -> None:
        self._values = values
        self._extra = extra
        self._matcher: Matcher | None = None

    def compute(
        self,
        left: npt.NDArray[Any],
        right: npt.NDArray[Any],
        disparity: npt.NDArray[np.int16] | None = None,
    ) -> npt.NDArray[np.int16]:
        """Returns int16 (H, W): 16 times the disparity, `(minDisparity - 1) * 16` where unknown."""
        if self._matcher is None:
            self._matcher = Matcher(confidence=False, channels="bgr", **self._parameters())
        raw = self._matcher(left, right).raw
        unknown = np.int16((self._values["minDisparity"] - 1) * 16)
        out = np.empty_like(raw) if disparity is None else disparity
        np.copyto(out, raw)
        out[raw == INVALID_RAW] = unknown
        return out

    if TYPE_CHECKING:
        # The getters and setters below the class.
        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def _parameters(self) -> dict[str, Any]:
        values = self._values
        if values["numDisparities"] < 1:
            raise ValueError(f"numDisparities is {values['numDisparities']}; it must be 1 to 1024")
        if values["mode"] not in _MODES:
            raise ValueError(f"mode is {values['mode']}; it must be 0 to 3")
        given: dict[str, Any] = {
            "disparities": values["numDisparities"],
            "min_disparity": values["minDisparity"],
            # As OpenCV reads 0 and negative values.
            "uniqueness": min(values["uniquenessRatio"], 99) if values["uniquenessRatio"] >= 0 else 10,
            "left_right": max(values["disp12MaxDiff"], 1),
            "speckle_size": max(values["speckleWindowSize"], 0),
            "speckle_range": float(max(values["speckleRange"], 0)),
        }
        given.update(self._extra)
        return given

    def _set(self, name: str, value: int) -> None:
        if name in _IGNORED and name not in _told:
            _told.add(name)
            _log.info("StereoSGBM: %s has no effect: %s", name, _IGNORED[name])
        self._values[name] = int(value)
        self._matcher = None


def _accessors(name: str) -> tuple[Any, Any]:
    def get(self: StereoSGBM) -> int:
        return self._values[name]

    def put(self: StereoSGBM, value: int) -> None:
        self._set(name, value)

    get.__doc__ = f"Returns {name}."
    put.__doc__ = f"Changes {name}."
    return get, put


for _name in _NAMES:
    _get, _put = _accessors(_name)
    _title = _name[0].upper() + _name[1:]
    setattr(StereoSGBM, f"get{_title}", _get)
    setattr(StereoSGBM, f"set{_title}", _put)


def StereoSGBM_create(
    minDisparity: int = 0,
    numDisparities: int = 16,
    blockSize: int = 3,
    P1: int = 0,
    P2: int = 0,
    disp12MaxDiff: int = 0,
    preFilterCap: int = 0,
    uniquenessRatio: int = 0,
    speckleWindowSize: int = 0,
    speckleRange: int = 0,
    mode: int = STEREO_SGBM_MODE_SGBM,
    **extra: Any,
) -> StereoSGBM:
    """Makes a matcher with OpenCV's parameters; `extra` are stereod's own, such as engine="cpu"."""
    given = (
        minDisparity,
        numDisparities,
        blockSize,
        P1,
        P2,
        disp12MaxDiff,
        preFilterCap,
        uniquenessRatio,
        speckleWindowSize,
        speckleRange,
        mode,
    )
    matcher = StereoSGBM(dict.fromkeys(_NAMES, 0), extra)
    defaults = {"blockSize": 3}
    for name, value in zip(_NAMES, given):
        if value != defaults.get(name, 0):
            matcher._set(name, value)
        matcher._values[name] = int(value)
    return matcher
