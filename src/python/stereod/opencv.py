"""A drop-in for `cv2.StereoSGBM`: the same calls, matched by stereod.

The results have OpenCV's form (int16, 16 times the disparity, `(minDisparity - 1) * 16` where it is
unknown), so `cv2.reprojectImageTo3D` and existing code work unchanged. They are not OpenCV's numbers:
costs, penalties and filters are stereod's.
"""

from __future__ import annotations

import difflib
import gzip
import json
import logging
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ._native import INVALID_RAW, PARAMETERS, Matcher

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._native import _Extra

STEREO_SGBM_MODE_SGBM = StereoSGBM_MODE_SGBM = 0
STEREO_SGBM_MODE_HH = StereoSGBM_MODE_HH = 1
STEREO_SGBM_MODE_SGBM_3WAY = StereoSGBM_MODE_SGBM_3WAY = 2
STEREO_SGBM_MODE_HH4 = StereoSGBM_MODE_HH4 = 3
StereoMatcher_DISP_SHIFT = 4
StereoMatcher_DISP_SCALE = 16

_log = logging.getLogger("stereod")

#: OpenCV's parameters in the order of its files, and their defaults.
_DEFAULTS = {
    "minDisparity": 0,
    "numDisparities": 16,
    "blockSize": 3,
    "speckleWindowSize": 0,
    "speckleRange": 0,
    "disp12MaxDiff": 0,
    "preFilterCap": 0,
    "uniquenessRatio": 0,
    "P1": 0,
    "P2": 0,
    "mode": 0,
}

#: Those without a counterpart, and why that is no loss.
_IGNORED = {
    "blockSize": "the window follows the texture",
    "P1": "penalties suit the cost",
    "P2": "penalties suit the cost",
    "preFilterCap": "the cost needs no pre-filter",
    "mode": "the number of paths suits the cost; paths=8 sets it",
}

#: stereod's names of the others.
_COUNTERPARTS = {
    "minDisparity": "min_disparity",
    "numDisparities": "disparities",
    "speckleWindowSize": "speckle_size",
    "speckleRange": "speckle_range",
    "disp12MaxDiff": "left_right",
    "uniquenessRatio": "uniqueness",
}

#: Name of the matcher in OpenCV's files.
_KIND = "StereoMatcher.SGBM"
_FORMAT = 3

_told: set[str] = set()


class StereoSGBM:
    """Matches rectified pairs like `cv2.StereoSGBM`.

    Takes OpenCV's parameters; `extra` are stereod's own, such as engine="cpu", and take precedence.
    """

    __slots__ = ("_extra", "_matcher", "_values")

    #: Makes a matcher, as `cv2.StereoSGBM.create` does.
    create: ClassVar[type[StereoSGBM]]

    MODE_SGBM = STEREO_SGBM_MODE_SGBM
    MODE_HH = STEREO_SGBM_MODE_HH
    MODE_SGBM_3WAY = STEREO_SGBM_MODE_SGBM_3WAY
    MODE_HH4 = STEREO_SGBM_MODE_HH4
    DISP_SHIFT = StereoMatcher_DISP_SHIFT
    DISP_SCALE = StereoMatcher_DISP_SCALE

    def __init__(
        self,
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
        **extra: Unpack[_Extra],
    ) -> None:
        for name in extra:
            if name not in (*PARAMETERS, "calibration", "channels", "confidence"):
                near = difflib.get_close_matches(name, (*_DEFAULTS, *PARAMETERS), 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(
                    f"'{name}' is an invalid keyword argument for StereoSGBM_create(){meant}"
                )
        Matcher(**extra)  # Refuses wrong values.
        self._extra = extra
        self._values = dict(_DEFAULTS)
        self._matcher: Matcher | None = None
        self._set(
            minDisparity=minDisparity,
            numDisparities=numDisparities,
            blockSize=blockSize,
            P1=P1,
            P2=P2,
            disp12MaxDiff=disp12MaxDiff,
            preFilterCap=preFilterCap,
            uniquenessRatio=uniquenessRatio,
            speckleWindowSize=speckleWindowSize,
            speckleRange=speckleRange,
            mode=mode,
        )

    def compute(
        self,
        left: npt.NDArray[Any],
        right: npt.NDArray[Any],
        disparity: npt.NDArray[np.int16] | None = None,
    ) -> npt.NDArray[np.int16]:
        """Returns int16 (H, W): 16 times the disparity, `(minDisparity - 1) * 16` where unknown.

        As with OpenCV, the result is written to `disparity` if that has its shape and type.
        """
        if not (disparity is None or isinstance(disparity, np.ndarray)):
            raise TypeError(f"disparity is {type(disparity).__name__}, not a NumPy array")
        try:
            if self._matcher is None:
                self._matcher = self._made()
            raw = self._matcher(left, right).raw
        except ValueError as error:
            raise ValueError(self._renamed(str(error))) from None
        result = np.empty_like(raw)
        if disparity is not None and disparity.dtype == raw.dtype:
            if disparity.shape in (raw.shape, (*raw.shape, 1)):
                result = disparity
        if not result.flags.writeable:
            raise ValueError("disparity is a read-only array")
        out = result[..., 0] if result.ndim == 3 else result
        np.copyto(out, raw)
        out[raw == INVALID_RAW] = (self._values["minDisparity"] - 1) * StereoMatcher_DISP_SCALE
        return result

    def getMinDisparity(self) -> int:
        return self._values["minDisparity"]

    def setMinDisparity(self, minDisparity: int) -> None:
        self._set(minDisparity=minDisparity)

    def getNumDisparities(self) -> int:
        return self._values["numDisparities"]

    def setNumDisparities(self, numDisparities: int) -> None:
        self._set(numDisparities=numDisparities)

    def getBlockSize(self) -> int:
        return self._values["blockSize"]

    def setBlockSize(self, blockSize: int) -> None:
        self._set(blockSize=blockSize)

    def getP1(self) -> int:
        return self._values["P1"]

    def setP1(self, P1: int) -> None:
        self._set(P1=P1)

    def getP2(self) -> int:
        return self._values["P2"]

    def setP2(self, P2: int) -> None:
        self._set(P2=P2)

    def getDisp12MaxDiff(self) -> int:
        return self._values["disp12MaxDiff"]

    def setDisp12MaxDiff(self, disp12MaxDiff: int) -> None:
        self._set(disp12MaxDiff=disp12MaxDiff)

    def getPreFilterCap(self) -> int:
        return self._values["preFilterCap"]

    def setPreFilterCap(self, preFilterCap: int) -> None:
        self._set(preFilterCap=preFilterCap)

    def getUniquenessRatio(self) -> int:
        return self._values["uniquenessRatio"]

    def setUniquenessRatio(self, uniquenessRatio: int) -> None:
        self._set(uniquenessRatio=uniquenessRatio)

    def getSpeckleWindowSize(self) -> int:
        return self._values["speckleWindowSize"]

    def setSpeckleWindowSize(self, speckleWindowSize: int) -> None:
        self._set(speckleWindowSize=speckleWindowSize)

    def getSpeckleRange(self) -> int:
        return self._values["speckleRange"]

    def setSpeckleRange(self, speckleRange: int) -> None:
        self._set(speckleRange=speckleRange)

    def getMode(self) -> int:
        return self._values["mode"]

    def setMode(self, mode: int) -> None:
        self._set(mode=mode)

    def clear(self) -> None:
        """Does nothing, as in OpenCV."""

    def empty(self) -> bool:
        return False

    def getDefaultName(self) -> str:
        return "my_object"

    def save(self, filename: str | PathLike[str]) -> None:
        """Writes OpenCV's parameters as OpenCV does: .xml, .json, otherwise YAML; .gz compresses."""
        path = fspath(filename)
        plain = path[:-3] if path.lower().endswith(".gz") else path
        name, content = self.getDefaultName(), {"format": _FORMAT, "name": _KIND, **self._values}
        if plain.lower().endswith(".xml"):
            lines = "".join(f"  <{key}>{value}</{key}>\n" for key, value in content.items())
            text = f"<{name}>\n{lines}</{name}>"
            text = f'<?xml version="1.0"?>\n<opencv_storage>\n{text}\n</opencv_storage>\n'
        elif plain.lower().endswith(".json"):
            text = json.dumps({name: content}, indent=4) + "\n"
        else:
            lines = "".join(f"   {key}: {json.dumps(value)}\n" for key, value in content.items())
            text = f"%YAML:1.0\n---\n{name}:\n{lines}"
        with gzip.open(path, "wt") if plain != path else open(path, "w") as file:
            file.write(text)

    def write(self, fs: Any, name: str = "") -> None:
        """Writes OpenCV's parameters into a `cv2.FileStorage`, below `name` if there is one."""
        if name:
            fs.startWriteStruct(name, 5)  # A map.
        for key, value in {"format": _FORMAT, "name": _KIND, **self._values}.items():
            fs.write(key, value)
        if name:
            fs.endWriteStruct()

    def read(self, fn: Any) -> None:
        """Takes OpenCV's parameters from a `cv2.FileNode`, such as `fs.getNode("my_object")`."""
        if not hasattr(fn, "getNode"):
            raise TypeError(f"fn is {type(fn).__name__}, not a cv2.FileNode")
        name = fn.getNode("name") if fn.isMap() else None
        if name is None or not name.isString() or name.string() != _KIND:
            raise ValueError(
                f'fn holds no {_KIND}; files of `save` hold one below "{self.getDefaultName()}"'
            )
        nodes = {key: fn.getNode(key) for key in _DEFAULTS}
        for key, node in nodes.items():
            if not node.isInt():
                raise ValueError(f"fn has no whole number for {key}")
        self._set(**{key: int(node.real()) for key, node in nodes.items()})

    def _set(self, **values: int) -> None:
        checked = {}
        for name, value in values.items():
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"Argument '{name}' is required to be an integer, not {value!r}")
            if not -(2**31) <= value < 2**31:
                raise ValueError(f"{name} is {value}; it must fit 32 bits")
            checked[name] = int(value)
        if checked.get("mode", 0) not in range(4):
            raise ValueError(f"mode is {checked['mode']}; it must be 0 to 3")
        ignored = [
            name
            for name, value in checked.items()
            if name in _IGNORED and name not in _told and value != self._values[name]
        ]
        if ignored:
            _told.update(ignored)
            reasons = ", ".join(f"{name} ({_IGNORED[name]})" for name in ignored)
            _log.warning("StereoSGBM: without effect: %s", reasons)
        self._values.update(checked)
        self._matcher = None

    def _made(self) -> Matcher:
        """Makes the matcher with the parameters in effect."""
        values = dict(self._values)
        # As OpenCV reads 0, negative values, and a ratio that leaves nothing.
        ratio = values["uniquenessRatio"]
        values["uniquenessRatio"] = min(ratio, 99) if ratio >= 0 else 10
        values["disp12MaxDiff"] = max(values["disp12MaxDiff"], 1)
        values["speckleWindowSize"] = max(values["speckleWindowSize"], 0)
        values["speckleRange"] = max(values["speckleRange"], 0)
        given: dict[str, Any] = {"confidence": False, "channels": "bgr"}
        given.update({own: values[name] for name, own in _COUNTERPARTS.items()})
        given.update(self._extra)
        return Matcher(**given)

    def _renamed(self, message: str) -> str:
        """Puts OpenCV's names into a message."""
        for name, own in _COUNTERPARTS.items():
            if own not in self._extra:
                message = message.replace(f"`{own}`", f"`{name}`")
        return message


StereoSGBM.create = StereoSGBM

#: Makes a matcher, as `cv2.StereoSGBM_create` does.
StereoSGBM_create = StereoSGBM
