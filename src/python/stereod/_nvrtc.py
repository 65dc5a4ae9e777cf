"""Finds CUDA's run-time compiler where `pip install stereod[cuda]` puts it."""

import ctypes
import importlib.util
from pathlib import Path


def prepare() -> None:
    """Loads the library, so that the matcher finds it by its name; does nothing without it."""
    found = importlib.util.find_spec("nvidia")
    for folder in (found.submodule_search_locations if found else None) or []:
        for library in sorted(Path(folder).glob("*/lib/libnvrtc.so.1[0-9]"), reverse=True):
            try:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
                return
            except OSError:
                continue
