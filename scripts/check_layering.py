#!/usr/bin/env python3
"""Checks the dependencies within src/: the modules that a module may name, the libraries restricted to
one place, and that files do not depend on each other in a cycle. Exit status 1 and one line for every
breach; --self-test shows that breaches are found."""

import itertools
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Rooms that each room of src/ may name besides itself. A new room needs a line here.
MAY_KNOW = {
    "core": set(),
    "matching": {"core"},
    "calibration": {"core"},
    "engine": {"core", "matching", "calibration"},
    "source": {"core", "matching"},
    "sink": {"core", "matching", "calibration"},
    "observe": {"core", "matching", "sink"},
    "status": {"core", "observe", "pipeline", "sink", "source", "telemetry"},
    "window": {"core", "calibration", "sink", "status"},
    "telemetry": {"core"},
    "serve": {"core", "sink", "status", "telemetry"},
    "pipeline": {"core", "engine", "source", "sink", "telemetry"},
    "matcher": {"core", "matching", "engine", "calibration", "settings", "sink", "source"},
    "settings": {"core", "matching", "calibration", "engine", "source", "sink", "observe", "window", "telemetry"},
}
MAY_KNOW["outputs"] = {"core", "calibration", "settings", "sink"}
MAY_KNOW["cli"] = MAY_KNOW["settings"] | {"settings", "outputs"}
MAY_KNOW["internals"] = MAY_KNOW["settings"] | {"settings", "status"}
MAY_KNOW["commands"] = MAY_KNOW["cli"] | {"cli", "pipeline", "serve", "status"}
MAY_KNOW["python"] = MAY_KNOW["matcher"] | {"matcher"}
MAY_KNOW["main"] = set()
MAY_KNOW["lib"] = {"core", "matching", "matcher", "commands"}

# Libraries that only these places may name, as prefixes of paths below src/. Builds without window and server
# and of the library alone confine the libraries of those and of the command line.
LIBRARIES = {
    r"cudarc": ("engine/cuda",),
    r"gstreamer(?:_\w+)?": ("source", "sink/video"),
    r"pyo3|numpy": ("python",),
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
    """Returns the source without test-only code, because tests may combine stages freely."""
    for found in reversed(list(re.finditer(r"#\[cfg\((?:all\()?test\b[^\n]*\]", code))):
        depth, end = 0, found.end()
        while end < len(code) and not (depth == 0 and code[end] in "{};"):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[end], 0)
            end += 1
        end = block_end(code, end) if code[end : end + 1] == "{" else end + 1
        code = code[: found.start()] + "\n" * code.count("\n", found.start(), end) + code[end:]
    return code


def expanded(text, before=()):
    """(segments, name) for every path of a `use`: a::{b as c, d::*} gives a::b named c and a::d::*."""
    head, brace, rest = text.partition("{")
    segments = [part.strip() for part in head.split(" as ")[0].split("::")]
    if not brace:
        if segments == ["self"] and before:
            segments = []
        path = (*before, *segments)
        yield path, head.split(" as ")[-1].strip() if " as " in head else path[-1]
        return
    item, depth = "", 0
    for character in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if item.strip():
                yield from expanded(item, (*before, *segments[:-1]))
            item = ""
        else:
            item += character


def module_of(path):
    """The module that a file holds: a/b.rs and a/b/mod.rs hold a::b, lib.rs the crate itself."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


class Names:
    """Names used by a file: `imports` as name: (line, path), and `paths` as (line, path) elsewhere."""

    def __init__(self, path, code):
        self.path, self.module, self.imports, self.globs, self.paths = path, module_of(path), {}, [], []
        for found in re.finditer(r"\bmod \w+\s*(?=\{)", code):
            end = block_end(code, found.end())
            inner = re.sub(r"(?<![\w:])super::", "self::", code[found.end() : end])
            code = code[: found.end()] + inner.ljust(end - found.end()) + code[end:]
        code = re.sub(r"\bpub\(in [\w:]+\)", lambda found: " " * len(found.group()), code)
        for found in re.finditer(r"\buse\s+([^;]+);", code):
            line = code.count("\n", 0, found.start()) + 1
            for path, name in expanded(" ".join(found.group(1).split())):
                if path[-1] == "*":
                    self.globs.append((line, path))
                else:
                    self.imports[name] = line, path
            code = code[: found.start()] + re.sub(r"[^\n]", " ", found.group()) + code[found.end() :]
        for found in re.finditer(r"(?<![\w:])\w+(?:::\w+)+", code):
            self.paths.append((code.count("\n", 0, found.start()) + 1, tuple(found.group().split("::"))))

    def all(self):
        """(line, path) for everything that it names."""
        return [*self.imports.values(), *self.globs, *self.paths]


def named_modules(names):
    """(line, name) for every module of the crate's top level that a file names."""
    for line, path in names.all():
        outward = sum(1 for _ in itertools.takewhile(lambda part: part == "super", path))
        if path[0] in ("crate", "stereod") or outward and outward >= len(names.module):
            yield line, path[max(outward, 1)]


class House:
    """All files of src/ and what they name of each other."""

    def __init__(self, files):
        self.rooms = {names.module: names for names in files}

    def absolute(self, module, path):
        """Resolves a path in a module to one from the crate's root; None for other crates."""
        first, rest = path[0], path[1:]
        if first in ("crate", "stereod"):
            return rest
        if first in ("self", "super"):
            while first in ("self", "super"):
                module = module[:-1] if first == "super" else module
                first, rest = (rest[0], rest[1:]) if rest else (None, ())
            return (*module, first, *rest) if first else module
        if (*module, first) in self.rooms:
            return (*module, *path)
        _, imported = self.rooms[module].imports.get(first, (0, None))
        if imported is None or imported[0] == first:
            return None
        beginning = self.absolute(module, imported)
        return beginning and (*beginning, *rest)

    def home(self, path, seen=()):
        """Returns room and name of the item behind a path from the root, through re-exports."""
        length = next((n for n in range(len(path), -1, -1) if path[:n] in self.rooms), 0)
        if length == len(path) or path[:length] not in self.rooms:
            return None  # A module alone: what is used of it is named by other paths.
        room, item = path[:length], path[length]
        if item in self.rooms[room].imports and (room, item) not in seen:
            onward = self.absolute(room, self.rooms[room].imports[item][1])
            if onward:
                return self.home((*onward, *path[length + 1 :]), (*seen, (room, item)))
        return room, item

    def edges(self):
        """(file, other file): [line, name], where a file names something of another."""
        edges = {}
        for names in self.rooms.values():
            for line, path in sorted(names.all()):
                target = self.absolute(names.module, path)
                room, item = target is not None and self.home(target) or (names.module, "")
                if room != names.module:
                    edges.setdefault((names.path, self.rooms[room].path), (line, item))
        return edges


def circle_through(known_by, start):
    """Returns the shortest dependency cycle of files through `start`, or None."""
    came_from, waiting = {}, [start]
    for file in waiting:
        for other in sorted(known_by.get(file, ())):
            if other == start:
                circle = [file]
                while circle[0] != start:
                    circle.insert(0, came_from[circle[0]])
                return circle
            if other not in came_from:
                came_from[other] = file
                waiting.append(other)
    return None


def circles(house):
    """Returns one breach per cycle of files, cutting one link of each until none is left."""
    edges, known_by = house.edges(), {}
    for file, other in edges:
        known_by.setdefault(file, set()).add(other)
    for file in sorted(known_by):
        while circle := circle_through(known_by, file):
            links = list(zip(circle, circle[1:] + circle[:1]))
            told = ", ".join(
                f"{one.as_posix()} names `{edges[one, to][1]}` of {to.as_posix()}" for one, to in links
            )
            yield f"src/{file.as_posix()}:{edges[links[0]][0]}: files know each other in a circle: {told}"
            known_by[circle[-1]].remove(circle[0])


def breaches_of(path, code, names):
    """Returns the forbidden names in the file at `path` (relative to src/)."""
    module = path.parts[0].removesuffix(".rs")
    allowed = MAY_KNOW.get(module)
    if allowed is None:
        yield 1, f"no rule for the module `{module}`: add it to scripts/check_layering.py"
        return
    for line, name in named_modules(names):
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
    files = []
    for file in sorted(src.rglob("*.rs")):
        path = file.relative_to(src)
        if is_test(path):
            continue
        code = without_tests(code_of(file.read_text(encoding="utf-8")))
        files.append(Names(path, code))
        for line, message in sorted(set(breaches_of(path, code, files[-1]))):
            yield f"src/{path.as_posix()}:{line}: {message}"
    yield from circles(House(files))


BAD = {
    "matching/cost.rs": ("use crate::engine::Engine;", "`matching` must not know `engine`"),
    "core/frame.rs": ("\nfn f(p: crate::source::P) {}", "`core` must not know `source`"),
    "sink/pictures.rs": ("use crate::{core::Image, settings::{Colour, Log}};", "`sink` must not know `settings`"),
    "source/demo.rs": ("use super::super::cli::Cli;", "`source` must not know `cli`"),
    "source/mod.rs": ("use super::pipeline;", "`source` must not know `pipeline`"),
    "engine/cpu/mod.rs": ("use crate::{\n    matching::{self, Cost},\n    sink,\n};", "`engine` must not know `sink`"),
    "pipeline.rs": ("let s: &crate::settings::Settings;", "`pipeline` must not know `settings`"),
    "engine/cpu/row.rs": ("use cudarc::driver;", "`cudarc` belongs into src/engine/cuda"),
    "core/queue.rs": ("use gstreamer as gst;", "`gstreamer` belongs into"),
    "sink/video_tags.rs": ("gstreamer_video::init();", "`gstreamer_video` belongs into"),
    "engine/arrays.rs": ("use {numpy::PyArray2};", "`numpy` belongs into src/python"),
    "matching/pair.rs": ("use crate::*;", "a glob import"),
    "lib.rs": ("pub use crate::settings::Settings;", "`lib` must not know `settings`"),
    "misc.rs": ("", "no rule for the module `misc`"),
    "observe/a.rs": (
        "pub struct A;\nuse super::b::B;",
        "in a circle: observe/a.rs names `B` of observe/b.rs, observe/b.rs names `A` of observe/a.rs",
    ),
    "core/a.rs": (
        "pub fn a() { super::b::b() }",
        "core/a.rs names `b` of core/b.rs, core/b.rs names `C` of core/c.rs, core/c.rs names `a` of core/a.rs",
    ),
    "telemetry/logs.rs": ("use super::E;", "telemetry/mod.rs names `start` of telemetry/logs.rs"),
}

GOOD = {
    "matching/mod.rs": "//! See [`crate::engine`].\nuse crate::core::Image; /* crate::cli */ // crate::sink\n"
    'const A: &str = "crate::cli \\" cudarc::"; const B: [char; 2] = [\'"\', \'\\u{22}\']; use super::core;',
    "sink/mod.rs": "fn f<'a>(a: &'a str) {}\n#[cfg(test)]\nmod tests {\n    use crate::source::demo; mod m {}\n}\n"
    "use crate::core;",
    "python/mod.rs": "use pyo3::PyResult; use super::core;",
    "sink/video.rs": "use gstreamer as gst;",
    "source/gst.rs": "use gstreamer_app as gst_app; use super::Source; use crate::source::Source;",
    "engine/tests.rs": "use crate::settings;",
    "commands/run.rs": "use crate::{cli::RunArgs, pipeline::{self, Flow}, settings};",
    "main.rs": "fn main() { stereod::program() }",
    # The others of the circles above; one line is enough for a circle.
    "observe/b.rs": "use crate::observe::{a::{self as first}}; fn f(a: first::A) {} pub struct B;",
    "core/b.rs": "use super::c::*; use super::c; pub fn b(c: c::C) {}",
    "core/c.rs": "pub struct C;\nimpl C { fn f() { use crate::core::a; a::a() } }",
    "telemetry/mod.rs": "mod logs; pub struct E; fn f() { logs::start(); }",
    # No circles: modules that are declared, what tests name, and re-exports, which lead elsewhere.
    "calibration/mod.rs": "mod camera; mod solve; pub use camera::Camera; pub(in crate::calibration) use solve::solve;",
    "calibration/camera.rs": "pub struct Camera;\n#[cfg(test)]\nuse super::solve;\n#[cfg(test)]\nfn f() { solve::solve() }",
    "calibration/solve.rs": "use super::Camera; pub fn solve() {}",
    "sink/video/mod.rs": "mod times; pub struct Video;",
    "sink/video/times.rs": "mod inner { use super::T; } struct T; fn f(v: super::Video) {}",
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
