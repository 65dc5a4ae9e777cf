"""The program `stereod` with a GStreamer of its own, in the folders of this package; on Windows with PyPI's."""

import os
import signal
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program, which finds its plug-ins and no others."""
    here = Path(__file__).resolve().parent
    # Plug-ins of another GStreamer would bring its libraries, and crash.
    for name in ("GST_PLUGIN_PATH", "GST_PLUGIN_PATH_1_0", "GST_PLUGIN_SYSTEM_PATH_1_0"):
        os.environ.pop(name, None)
    if sys.platform == "win32":
        from gstreamer_libs import gstreamer_env

        # Windows cannot replace a process by another. Ctrl-C reaches both, and is the program's to answer.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(subprocess.call([here / "stereod.exe", *sys.argv[1:]], env=gstreamer_env()[0]))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ["GST_PLUGIN_SYSTEM_PATH_1_0"] = str(here / "plugins")
    os.environ["GST_REGISTRY_1_0"] = str(cache / "stereod" / "plugins.bin")
    # They are few and known, so that no further process has to look at them first.
    os.environ["GST_REGISTRY_FORK"] = "no"
    os.execv(here / "stereod", ["stereod", *sys.argv[1:]])
