#!/usr/bin/env python3
"""Checks who knows whom in src/: which modules of the crate a module may name, and which libraries
belong to one place only. Exit status 1 and one line for every breach; --self-test shows that breaches
are found."""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DATA = {"frame", "pool", "control", "backoff", "clock", "memory", "reading", "redact", "text", "thread"}
STAGES = DATA | {"pair", "synchronisation", "calibration", "matching", "alignment", "range", "sameness"}
PARTS = STAGES | {"engine", "source", "sink", "queue", "telemetry"}

# What each module of src/ may name besides itself. A new module needs a line here.
MAY_KNOW = {
    "memory": set(),
    "pool": {"memory"},
    "control": set(),
    "backoff": set(),
    "clock": set(),
    "reading": set(),
    "redact": set(),
    "text": set(),
    "thread": set(),
    "frame": {"pool"},
    "pair": DATA,
    "synchronisation": DATA,
    "calibration": DATA,
    "matching": DATA,
    "alignment": DATA,
    "range": DATA | {"matching"},
    "sameness": DATA,
    "engine": STAGES,
    "queue": DATA,
    "source": STAGES,
    "sink": STAGES,
    "telemetry": DATA,
    "pace": DATA,
    "pipeline": PARTS | {"pace"},
    "settings": PARTS,
    "cli": PARTS | {"settings"},
    "commands": PARTS | {"settings", "cli", "pipeline", "pace"},
    "main": PARTS | {"settings", "cli", "commands", "pipeline"},
    "lib": PARTS | {"settings", "cli", "commands", "pipeline"},
}

# Libraries that only these places may name, as prefixes of paths below src/.
LIBRARIES = {
    r"cudarc": ("engine/cuda",),
    r"gstreamer(?:_\w+)?": ("source", "sink/video"),
    r"wgpu(?:_\w+)?|winit|egui(?:_\w+)?": ("sink/window",),
    r"hyper(?:_\w+)?|tokio|prometheus_client|procfs": ("telemetry/metrics",),
    r"clap(?:_\w+)?": ("settings", "cli", "commands", "main"),
}

TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/          # comments
      | b?r(\#*)".*?"\1             # raw texts
      | b?"(?:\\.|[^"\\])*"         # texts
      | b?'(?:\\(?:u\{\w+\}|x\w\w|.)|[^'\\])'   # characters, but no lifetimes
    """,
    re.S | re.X,
)


def code_of(text):
    """The source without comments and texts; lines keep their numbers."""
    return TOKENS.sub(lambda found: '""' + "\n" * found.group().count("\n"), text)


def block_end(code, start):
    """The index just after the block whose opening brace is the first one from `start`."""
    depth = 0
    for at in range(code.index("{", start), len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return len(code)


def without_tests(code):
    """The source without its test modules: tests may bring stages together as they like."""
    for found in reversed(list(re.finditer(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub )?mod \w+\s*\{", code))):
        end = block_end(code, found.start())
        code = code[: found.start()] + "\n" * code.count("\n", found.start(), end) + code[end:]
    return code


def first_names(code, at):
    """The first names of a path or of a {group, of::them} that begins at `at`."""
    if code[at : at + 1] != "{":
        found = re.match(r"\w+|\*", code[at:])
        return [found.group()] if found else []
    group = code[at + 1 : block_end(code, at) - 1]
    while "{" in group:
        inner = group.index("{")
        group = group[:inner] + group[block_end(group, inner) :]
    return [item.strip().split("::")[0].split(" ")[0] for item in group.split(",") if item.strip()]


def named_modules(path, code):
    """(line, name) for every module of the crate's top level that a file names."""
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "mod":
        parts.pop()
    # From src/a.rs the crate's root is one `super` away, from src/a/b.rs two.
    depth = len(parts)
    for found in re.finditer(r"\b(?:crate|stereod)::|(?<![\w:])((?:super::)+)", code):
        supers = (found.group(1) or "").count("super::")
        if found.group(1) and supers < depth:
            continue
        line = code.count("\n", 0, found.start()) + 1
        for name in first_names(code, found.end()):
            yield line, name


def breaches_of(path, text):
    """What the file at `path` (relative to src/) names and must not."""
    code = without_tests(code_of(text))
    module = path.parts[0].removesuffix(".rs")
    allowed = MAY_KNOW.get(module)
    if allowed is None:
        yield 1, f"no rule for the module `{module}`: add it to scripts/check_layering.py"
        return
    for line, name in named_modules(path, code):
        if name == "*":
            yield line, "a glob import of the crate's root hides who knows whom"
        elif name in MAY_KNOW and name != module and name not in allowed:
            yield line, f"`{module}` must not know `{name}`"
    where = path.with_suffix("").as_posix()
    for library, homes in LIBRARIES.items():
        if any(where == home or where.startswith(home + "/") for home in homes):
            continue
        for found in re.finditer(rf"(?<![\w.])({library})\b(?=\s*(?:::|;|\bas\b))", code):
            line = code.count("\n", 0, found.start()) + 1
            yield line, f"`{found.group(1)}` belongs into {', '.join('src/' + home for home in homes)}"


def is_test(path):
    return path.stem in {"tests", "test_support"} or "tests" in path.parts[:-1]


def check(src):
    """All breaches below a folder, as lines for people."""
    for file in sorted(src.rglob("*.rs")):
        path = file.relative_to(src)
        if not is_test(path):
            for line, message in sorted(set(breaches_of(path, file.read_text(encoding="utf-8")))):
                yield f"src/{path.as_posix()}:{line}: {message}"


BAD = {
    "matching/cost.rs": ("use crate::engine::Engine;", "`matching` must not know `engine`"),
    "frame.rs": ("\nfn f(p: crate::pair::P) {}", "`frame` must not know `pair`"),
    "sink/pictures.rs": ("use crate::{frame::Image, settings::{Colour, Log}};", "`sink` must not know `settings`"),
    "source/demo.rs": ("use super::super::cli::Cli;", "`source` must not know `cli`"),
    "source/mod.rs": ("use super::pipeline;", "`source` must not know `pipeline`"),
    "engine/cpu/mod.rs": ("use crate::{\n    matching::{self, Cost},\n    sink,\n};", "`engine` must not know `sink`"),
    "pipeline.rs": ("let s: &crate::settings::Settings;", "`pipeline` must not know `settings`"),
    "engine/cpu/row.rs": ("use cudarc::driver;", "`cudarc` belongs into src/engine/cuda"),
    "queue.rs": ("use gstreamer as gst;", "`gstreamer` belongs into"),
    "sink/video_tags.rs": ("gstreamer_video::init();", "`gstreamer_video` belongs into"),
    "sink/windows.rs": ("use {wgpu::Device};", "`wgpu` belongs into src/sink/window"),
    "pair.rs": ("use crate::*;", "a glob import"),
    "misc.rs": ("", "no rule for the module `misc`"),
}

GOOD = {
    "matching/mod.rs": "//! See [`crate::engine`].\nuse crate::frame::Image; /* crate::cli */ // crate::sink\n"
    'const A: &str = "crate::cli \\" wgpu::"; const B: [char; 2] = [\'"\', \'\\u{22}\']; use super::frame;',
    "sink/mod.rs": "fn f<'a>(a: &'a str) {}\n#[cfg(test)]\nmod tests {\n    use crate::source::demo; mod m {}\n}\n"
    "use crate::frame;",
    "sink/window/mod.rs": "use wgpu::Device; use super::super::frame; use super::pictures;",
    "sink/video.rs": "use gstreamer as gst;",
    "source/gst.rs": "use gstreamer_app as gst_app; use super::Source; use crate::source::Source;",
    "engine/tests.rs": "use crate::settings;",
    "commands/run.rs": "use crate::{cli::RunArgs, pipeline::{self, Flow}, settings};",
    "main.rs": "use stereod::{cli::Cli, commands};",
}


def self_test():
    """Fails unless every bad sample is found, on its line, and no good one is."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        src = Path(folder)
        for name, sample in {**{n: t for n, (t, _) in BAD.items()}, **GOOD}.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(sample, encoding="utf-8")
        found = list(check(src))
    for name, (_, message) in BAD.items():
        mine = [line for line in found if line.startswith(f"src/{name}:")]
        if len(mine) != 1 or message not in mine[0]:
            faults.append(f"src/{name}: expected one breach, `{message}`, found {mine}")
    faults += [f"not a breach: {line}" for line in found if line.split(":")[0][4:] not in BAD]
    if "src/engine/cpu/mod.rs:1: `engine` must not know `sink`" not in found:
        faults.append("the line of a group is the line where it begins")
    return faults


def main(arguments):
    if arguments == ["--self-test"]:
        faults = self_test()
        outcome = f"{len(BAD)} bad samples are found, {len(GOOD)} good ones pass"
    elif not arguments:
        faults = list(check(ROOT / "src"))
        outcome = "who knows whom: as agreed"
    else:
        faults, outcome = ["usage: check_layering.py [--self-test]"], ""
    print("\n".join(faults) if faults else outcome)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
