from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypedDict, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack

__all__ = [
    "INVALID_RAW",
    "PARAMETERS",
    "Batch",
    "Calibration",
    "CalibrationError",
    "DeviceError",
    "Disparity",
    "Matcher",
    "Pair",
    "Pairs",
    "Stream",
    "__version__",
    "open",
]
__version__: str
INVALID_RAW: int
PARAMETERS: tuple[str, ...]

class DeviceError(RuntimeError): ...
class CalibrationError(ValueError): ...

class _HasArray(Protocol):
    """PIL images, tensors and others that NumPy takes."""
    def __array__(self) -> npt.NDArray[Any]: ...

class _HasInterface(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

class _HasDlpack(Protocol):
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

_Image = (
    npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | _HasArray | _HasInterface | _HasDlpack
)
_Images = _Image | Sequence[_Image]
_Numbers = npt.NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]
_Path = str | PathLike[str]
_Channels = Literal["rgb", "bgr"]
_Corners = Iterable[Sequence[Sequence[float]] | npt.NDArray[Any]] | npt.NDArray[Any]
_Whole = SupportsIndex | str | None
_Real = SupportsFloat | SupportsIndex | str | None
_Word = str | None

class _Parameters(TypedDict, total=False):
    preset: _Word
    disparities: _Whole
    min_disparity: _Whole
    cost: _Word
    ad_truncation: _Whole
    ad_window: _Whole
    census_window: _Word
    block_window: _Whole
    block_truncation: _Whole
    mi_truncation: _Whole
    census_weight: _Whole
    gradient_weight: _Whole
    intensity_weight: _Whole
    gradient_truncation: _Whole
    intensity_truncation: _Whole
    cost_window: _Whole
    cost_window_where: _Word
    prior: _Whole
    prior_strength: _Whole
    paths: _Whole
    surface: _Word
    windows: _Word
    p1: _Whole
    p2: _Whole
    p2_mode: _Word
    p2_guide: _Word
    p2_min: _Whole
    p2_slope: _Real
    uniqueness: _Whole
    subpixel: _Word
    left_right: _Whole
    min_confidence: _Whole
    median: _Whole
    speckle_size: _Whole
    speckle_range: _Real
    evidence: _Word
    spatial: _Whole
    smoothing: _Real
    smoothing_guard: _Real
    fill: _Word
    fill_max: _Whole
    steady: _Whole
    odometry: bool | None
    temporal: _Word
    history: _Whole
    degree: _Whole
    engine: _Word
    check: _Word
    prior_from: _Word
    prior_size: _Word
    threads: _Whole
    cores: _Whole
    nice: _Whole
    simd: _Word
    device: _Whole
    multiprocessors: _Whole
    gpu_priority: _Word
    kernel_cache: _Word
    memory: _Whole
    tiles: _Word

class _Extra(_Parameters, total=False):
    calibration: Calibration | None
    channels: _Channels
    confidence: bool

class _Wanted(TypedDict, total=False):
    position_m: Sequence[float]
    attitude_deg: Sequence[float]
    band_m: Sequence[float] | None
    far_m: float | None
    bin_deg: float | None
    boxes: Sequence[tuple[str, Sequence[float]]]

@final
class Matcher:
    def __new__(
        cls,
        *,
        calibration: Calibration | None = None,
        channels: _Channels = "rgb",
        confidence: bool = True,
        **parameters: Unpack[_Parameters],
    ) -> Matcher: ...
    def __call__(
        self, left: _Image, right: _Image, *, out: npt.NDArray[np.int16] | None = None
    ) -> Disparity: ...
    def next(self, left: _Image, right: _Image, time: float) -> Disparity: ...
    def stream(self, pairs: Iterable[Pair | tuple[_Image, _Image, float]]) -> Stream: ...
    def batch(self, left: _Images, right: _Images) -> Batch: ...
    def restart(self) -> None: ...
    def right_map(self, disparity: Disparity) -> npt.NDArray[np.int16]: ...
    def occluded(self, disparity: Disparity) -> npt.NDArray[np.bool_]: ...
    @property
    def description(self) -> str | None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...

@final
class Batch:
    @property
    def raw(self) -> npt.NDArray[np.int16]: ...
    @property
    def disparity(self) -> npt.NDArray[np.float32]: ...
    @property
    def confidence(self) -> npt.NDArray[np.uint8] | None: ...
    @property
    def verdicts(self) -> npt.NDArray[np.uint8] | None: ...
    def depth(self, rig: Calibration | None = None) -> npt.NDArray[np.float32]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Disparity: ...
    @overload
    def __getitem__(self, index: slice, /) -> tuple[Disparity, ...]: ...
    def __iter__(self) -> Iterator[Disparity]: ...

@final
class Disparity:
    @property
    def raw(self) -> npt.NDArray[np.int16]: ...
    @property
    def disparity(self) -> npt.NDArray[np.float32]: ...
    def smooth(self) -> npt.NDArray[np.float32]: ...
    @property
    def confidence(self) -> npt.NDArray[np.uint8] | None: ...
    @property
    def status(self) -> npt.NDArray[np.uint8] | None: ...
    @property
    def verdicts(self) -> npt.NDArray[np.uint8] | None: ...
    @property
    def pose(self) -> npt.NDArray[np.float64] | None: ...
    @property
    def odometry(self) -> dict[str, Any] | None: ...
    @property
    def left(self) -> npt.NDArray[np.uint8]: ...
    @property
    def right(self) -> npt.NDArray[np.uint8]: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def to_image(
        self, low: float | None = None, high: float | None = None
    ) -> npt.NDArray[np.uint8]: ...
    def _repr_html_(self) -> str: ...
    def depth(self, rig: Calibration | None = None) -> npt.NDArray[np.float32]: ...
    def depth_std(self, rig: Calibration | None = None) -> npt.NDArray[np.float32] | None: ...
    def points(self, rig: Calibration | None = None) -> npt.NDArray[np.float32]: ...
    def obstacles(
        self, rig: Calibration | None = None, **wanted: Unpack[_Wanted]
    ) -> dict[str, Any]: ...
    def write_png(self, file: _Path) -> None: ...
    def write_ply(self, file: _Path, rig: Calibration | None = None) -> int: ...

@final
class Calibration:
    def __new__(
        cls, *files: _Path, size: tuple[int, int] | None = None, alpha: float | None = None
    ) -> Calibration: ...
    @classmethod
    def solve(
        cls,
        left: _Corners,
        right: _Corners,
        *,
        board: tuple[int, int],
        square: float,
        size: tuple[int, int],
    ) -> tuple[Calibration, float]: ...
    @classmethod
    def of_cameras(
        cls,
        K1: _Numbers,
        D1: _Numbers,
        K2: _Numbers,
        D2: _Numbers,
        R: _Numbers,
        T: _Numbers,
        size: tuple[int, int],
        *,
        fisheye: bool = False,
        alpha: float | None = None,
    ) -> Calibration: ...
    @classmethod
    def of_rectified(
        cls,
        size: tuple[int, int],
        *,
        focal_px: float,
        baseline_m: float,
        centre_px: tuple[float, float] | None = None,
    ) -> Calibration: ...
    @classmethod
    def from_toml(cls, text: str, alpha: float | None = None) -> Calibration: ...
    def to_toml(self) -> str: ...
    def write(self, file: _Path) -> None: ...
    def rectify(
        self, left: _Image, right: _Image, *, channels: _Channels = "rgb"
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]: ...
    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def focal_px(self) -> float: ...
    @property
    def baseline_m(self) -> float: ...
    @property
    def centre_px(self) -> tuple[float, float]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def rectified_size(self) -> tuple[int, int]: ...
    @property
    def K1(self) -> npt.NDArray[np.float64]: ...
    @property
    def D1(self) -> npt.NDArray[np.float64]: ...
    @property
    def K2(self) -> npt.NDArray[np.float64]: ...
    @property
    def D2(self) -> npt.NDArray[np.float64]: ...
    @property
    def R(self) -> npt.NDArray[np.float64]: ...
    @property
    def T(self) -> npt.NDArray[np.float64]: ...
    @property
    def R1(self) -> npt.NDArray[np.float64]: ...
    @property
    def R2(self) -> npt.NDArray[np.float64]: ...
    @property
    def P1(self) -> npt.NDArray[np.float64]: ...
    @property
    def P2(self) -> npt.NDArray[np.float64]: ...
    @property
    def Q(self) -> npt.NDArray[np.float64]: ...

@final
class Pair:
    @property
    def left(self) -> npt.NDArray[np.uint8]: ...
    @property
    def right(self) -> npt.NDArray[np.uint8]: ...
    @property
    def time(self) -> float: ...

@final
class Stream:
    def __iter__(self) -> Stream: ...
    def __next__(self) -> Disparity: ...

@final
class Pairs:
    def __iter__(self) -> Pairs: ...
    def __next__(self) -> Pair: ...
    @property
    def size(self) -> tuple[int, int]: ...

def open(left: _Path, right: _Path | None = None) -> Pairs: ...
