"""The command `stereod`, with and without the package of the program."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from conftest import ROOT
from stereod import _program


def test_without_the_program_it_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "stereod_program", None)
    with pytest.raises(SystemExit) as ended:
        _program.main()
    assert "pip install 'stereod[program]'" in str(ended.value)


def test_with_it_it_becomes_the_program(monkeypatch):
    started = []
    monkeypatch.syspath_prepend(ROOT / "src/python")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "argv", ["/somewhere/stereod", "run", "--demo"])
    monkeypatch.setattr(os, "execv", lambda *call: started.append(call))
    monkeypatch.setattr(os, "environ", {"GST_PLUGIN_PATH": "/usr/lib/other", "XDG_CACHE_HOME": "/cache"})
    _program.main()
    folder = ROOT / "src/python/stereod_program"
    assert started == [(folder / "stereod", ["stereod", "run", "--demo"])]
    assert os.environ["GST_PLUGIN_SYSTEM_PATH_1_0"] == str(folder / "plugins")
    assert "GST_PLUGIN_PATH" not in os.environ


def test_on_windows_it_starts_the_program_with_gstreamer_of_pypi(monkeypatch):
    started = []
    gstreamer = SimpleNamespace(gstreamer_env=lambda: ({**os.environ, "PATH": "gstreamer_libs/bin"}, ""))
    monkeypatch.syspath_prepend(ROOT / "src/python")
    monkeypatch.setitem(sys.modules, "gstreamer_libs", gstreamer)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "argv", ["stereod.exe", "--version"])
    monkeypatch.setattr(os, "environ", {"GST_PLUGIN_PATH": "C:/other"})
    monkeypatch.setattr(signal, "signal", lambda *call: None)
    monkeypatch.setattr(subprocess, "call", lambda command, env: started.append((command, env)) or 3)
    with pytest.raises(SystemExit) as ended:
        _program.main()
    program = ROOT / "src/python/stereod_program/stereod.exe"
    assert started == [([program, "--version"], {"PATH": "gstreamer_libs/bin"})]
    assert ended.value.code == 3
