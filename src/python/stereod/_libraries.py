"""Finds the libraries of other packages on PyPI: CUDA's run-time compiler and ONNX Runtime."""

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path


def prepare() -> None:
    """Makes the libraries known, so that the matcher finds them; does nothing without them."""
    for library in _of_package("nvidia", "*/lib/libnvrtc.so.1[0-9]"):
        try:
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            break
        except OSError:
            continue
    # Large, so that it is named and not loaded.
    for library in _of_package("onnxruntime", "capi/*onnxruntime.[ds]*"):
        os.environ.setdefault("ORT_DYLIB_PATH", str(library))


def _of_package(name: str, pattern: str) -> Iterator[Path]:
    """Returns the files of a package, the newest version first."""
    found = importlib.util.find_spec(name)
    for folder in (found.submodule_search_locations if found else None) or []:
        yield from sorted(Path(folder).glob(pattern), reverse=True)
