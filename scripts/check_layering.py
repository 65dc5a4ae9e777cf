#!/usr/bin/env python3
"""Checks which rooms of a crate a room may name; Cargo.toml says it of the crates. Exit status 1 and one line for
every breach; --self-test shows that breaches are found."""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Rooms of each crate and the ones that each may name besides itself. Modules that are not listed are the base,
# which every room may name and which names no room.
ROOMS = {
    "src/core": {
        "matching": set(),
        "rectify": set(),
        "files": set(),
        "picture": {"files", "matching"},
        "engine": {"matching", "rectify"},
        "settings": {"matching", "engine"},
        "matcher": {"matching", "rectify", "files", "picture", "engine", "settings"},
    },
    "src/io": {"sink": set(), "source": {"ros2"}, "ros2": {"source"}},
    "src": {
        "telemetry": set(),
        "observe": set(),
        "viewer": set(),
        "keys": set(),
        "pipeline": {"telemetry"},
        "status": {"pipeline", "observe", "telemetry"},
        "window": {"viewer", "status", "keys"},
        "serve": {"viewer", "status", "telemetry", "keys"},
        "ros2": {"viewer"},
        "settings": {"observe", "window", "telemetry"},
        "outputs": {"settings"},
        "cli": {"settings", "outputs", "telemetry"},
        "devices": set(),
        "run": {"telemetry", "observe", "viewer", "pipeline", "status", "window", "serve", "ros2", "settings", "outputs", "cli", "devices"},
        "commands": {"run", "telemetry", "observe", "pipeline", "status", "window", "settings", "outputs", "cli", "devices"},
        "main": set(),
    },
}

COMMENTS_AND_TEXTS = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"', re.S)
TESTS = re.compile(r"^#\[cfg\(test\)\]\n.*", re.M | re.S)


def named(code):
    """(line, name) for every module of the crate's root that the code names."""
    for found in re.finditer(r"\bcrate::(?:\{([^;]*)\}\s*;|(\w+))", code):
        line = code.count("\n", 0, found.start()) + 1
        group = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", found[1] or found[2]))
        yield from ((line, name) for name in re.findall(r"(?:^|,)\s*(\w+)", group))


def check(root):
    """All breaches below a folder, as lines for people."""
    for crate, rooms in ROOMS.items():
        for file in sorted((root / crate).rglob("*.rs")):
            path = file.relative_to(root / crate)
            inner = [other for other in ROOMS if other != crate and other.startswith(crate + "/")]
            shown = file.relative_to(root).as_posix()
            if any(shown.startswith(other + "/") for other in [*inner, "src/calibration", "src/evaluate", "src/obstacles", "src/map", "src/python"]) or path.name in ("lib.rs", "tests.rs"):
                continue
            room = path.parts[0].removesuffix(".rs")
            code = COMMENTS_AND_TEXTS.sub(lambda text: "\n" * text[0].count("\n"), file.read_text(encoding="utf-8"))
            for line, name in named(TESTS.sub("", code)):
                if name in rooms and name != room and name not in rooms.get(room, ()):
                    yield f"{shown}:{line}: `{room}` must not know `{name}`"


SAMPLES = {
    "src/core/matching/cost.rs": ("use crate::engine::Engine;", "`matching` must not know `engine`"),
    "src/core/frame.rs": ("\nfn f(p: crate::matcher::P) {}", "`frame` must not know `matcher`"),
    "src/io/sink/a.rs": ("use crate::{ebml, source::{A, B}};", "`sink` must not know `source`"),
    "src/serve/a.rs": ("use crate::{\n    viewer::Ask,\n    settings,\n};", "`serve` must not know `settings`"),
    "src/core/engine/a.rs": ("use crate::matching::{self, Cost};\n// crate::settings\nconst A: &str = \"crate::settings\";", ""),
    "src/window/a.rs": ("use crate::viewer::Ask;\n#[cfg(test)]\nmod tests {\n    use crate::settings;\n}", ""),
}


def self_test():
    """Fails unless every bad sample is found and no good one is."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (sample, _) in SAMPLES.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(sample, encoding="utf-8")
        found = {line.split(":")[0]: line for line in check(Path(folder))}
    wanted = {name: message for name, (_, message) in SAMPLES.items() if message}
    return [f"{name}: {found.get(name)}" for name in SAMPLES if wanted.get(name, "\0") not in found.get(name, "\0")]


if __name__ == "__main__":
    faults = self_test() if sys.argv[1:] == ["--self-test"] else list(check(ROOT))
    print("\n".join(faults) if faults else "who knows whom: as agreed")
    sys.exit(bool(faults))
