#!/usr/bin/env python3
"""Holds the source to the limits in scripts/limits.toml, which only fall: files that import each other in a circle,
long functions, many parameters, deep nesting, lines of code by crate, of comments and of documents. Exit status 1 and a
line for every limit that is exceeded, or that lies more than 1 % above what is measured. --list names the functions and
circles behind the figures; --self-test shows that faults are found."""

import re
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = "scripts/limits.toml"
CRATES = {"src/core": "core", "src/calibration": "calibration", "src/io": "io", "src/evaluate": "evaluate", "src/obstacles": "obstacles", "src/map": "map", "src/python": "python", "src": "program"}

TOKENS = re.compile(
    r"""(//[^\n]*|/\*.*?\*/)                       # comments
      | b?r(\#*)".*?"\2 | b?"(?:\\.|[^"\\])*"      # texts
      | b?'(?:\\(?:u\{\w+\}|x\w\w|.)|[^'\\])'      # characters, but no lifetimes
    """,
    re.S | re.X,
)
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\n]*\]")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


def end_of_item(code, start):
    """The index after the item that begins at `start`: after its block, or after its semicolon."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
        if depth == 0 and code[at] in ";}":
            return at + 1
    return len(code)


def without_tests(code):
    """The source with blanks in place of test-only items."""
    while found := TEST.search(code):
        end = end_of_item(code, found.end())
        code = code[: found.start()] + re.sub(r"[^\n]", " ", code[found.start() : end]) + code[end:]
    return code


class File:
    """A Rust file: its module, its code without comments, texts and tests, and the paths that it names."""

    def __init__(self, path, crate, text):
        self.path = path
        parts = path.relative_to(crate).with_suffix("").parts
        self.module = parts[:-1] if parts[-1] in ("mod", "lib") else parts
        blanked = lambda found: ('""' if not found[1] else "") + "\n" * found[0].count("\n")
        self.code = without_tests(TOKENS.sub(blanked, text))
        self.lines = sum(1 for line in self.code.split("\n") if line.strip())
        self.comments = sum(1 for line in text.split("\n") if line.lstrip().startswith("//"))
        self.imports, self.named = {}, []
        rest = re.sub(r"\bpub\(in [\w:]+\)", "", self.code)
        for found in re.finditer(r"\bmod \w+\s*\{", rest):
            end = end_of_item(rest, found.start())
            inner = re.sub(r"(?<![\w:])super::", "self::", rest[found.end() : end])
            rest = rest[: found.end()] + inner[: end - found.end()].ljust(end - found.end()) + rest[end:]
        for found in re.finditer(r"\buse\s+([^;]+);", rest):
            for name, path in expanded(" ".join(found[1].split())):
                if name != "*":
                    self.imports[name] = path
                self.named.append(path)
        self.named += [tuple(found[0].split("::")) for found in PATH.finditer(re.sub(r"\buse\s+[^;]+;", "", rest))]


def expanded(text, before=()):
    """(name, path) for every name that a `use` brings: a::{b as c, d::*} gives c of a::b and * of a::d."""
    head, brace, rest = text.partition("{")
    path = (*before, *(part.strip() for part in head.split(" as ")[0].split("::")))
    if not brace:
        path = path[:-1] if path[-1] == "self" and before else path
        yield head.split(" as ")[-1].strip() if " as " in head else path[-1], path
        return
    item, depth = "", 0
    for character in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if item.strip():
                yield from expanded(item.strip(), path[:-1])
            item = ""
        else:
            item += character


class Crate:
    """The files of a crate and what they name of each other."""

    def __init__(self, files):
        self.files = {file.module: file for file in files}

    def absolute(self, module, path):
        """A path in a module as one from the crate's root; None for other crates."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return rest
        if first in ("self", "super"):
            while path and path[0] in ("self", "super"):
                module = module[:-1] if path[0] == "super" else module
                path = path[1:]
            return (*module, *path)
        if (*module, first) in self.files:
            return (*module, *path)
        imported = self.files[module].imports.get(first)
        if imported is None or imported[0] == first:
            return None
        beginning = self.absolute(module, imported)
        return beginning and (*beginning, *rest)

    def home(self, path, seen=()):
        """The module and the item behind a path from the root, through re-exports; None for a module alone."""
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self.files or n == 0)
        module = path[:length]
        if length == len(path) or module not in self.files:
            return None
        imported = self.files[module].imports.get(path[length])
        if imported and (module, path[length]) not in seen:
            onward = self.absolute(module, imported)
            if onward:
                return self.home((*onward, *path[length + 1 :]), (*seen, (module, path[length])))
        return module, path[length]

    def links(self):
        """{file: {other file: name}} for everything that a file takes from others than its own submodules, which it wires."""
        links = {}
        for file in self.files.values():
            for path in file.named:
                target = self.absolute(file.module, path)
                home = target and self.home(target)
                if home and home[0][: len(file.module)] != file.module:
                    links.setdefault(file.path, {}).setdefault(self.files[home[0]].path, home[1])
        return links


def script_links(files):
    """{file: {other file: names}} for the modules of the live page."""
    links = {}
    for file in files:
        for what, name in re.findall(r"^import\s+(.*?)\s+from\s+[\"'](\..*?)[\"']", file.read_text("utf-8"), re.M | re.S):
            links.setdefault(file, {})[file.parent / name] = " ".join(what.split())
    return links


def circles(links):
    """The groups of files that reach each other, each as a line that says what ties them."""
    reach = {}
    for start in links:
        reach[start], waiting = set(), [start]
        while waiting:
            for other in links.get(waiting.pop(), ()):
                if other not in reach[start]:
                    reach[start].add(other)
                    waiting.append(other)
    groups = {frozenset(other for other in reach[file] if file in reach.get(other, ())) for file in links if file in reach[file]}
    for group in sorted(groups, key=lambda group: sorted(group)):
        ties = [f"{one} takes `{name}` from {other}" for one in sorted(group) for other, name in links[one].items() if other in group]
        yield "files import each other in a circle: " + ", ".join(ties)


def functions(file):
    """(name, line, lines of code, parameters, depth of nesting) of every function."""
    for found in re.finditer(r"\bfn (\w+)", file.code):
        end = end_of_item(file.code, found.start())
        text = file.code[found.start() : end]
        if not text.endswith("}"):
            continue
        open_at = re.sub(r"<[^()]*?>", lambda match: " " * len(match[0]), text, count=1).index("(")
        depth, parameters, at = 0, [""], open_at
        while True:
            depth += {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
            depth -= text[at] == ">" and text[at - 1] != "-"
            if depth == 0:
                break
            if text[at] == "," and depth == 1:
                parameters.append("")
            elif at > open_at:
                parameters[-1] += text[at]
            at += 1
        count = sum(1 for one in parameters if one.strip() and not re.match(r"\s*&?('\w+ )?(mut )?self\b", one))
        deepest = depth = 0
        for character in text[at:]:
            depth += {"{": 1, "}": -1}.get(character, 0)
            deepest = max(deepest, depth)
        line = file.code.count("\n", 0, found.start()) + 1
        yield found[1], line, sum(1 for one in text.split("\n") if one.strip()), count, deepest


def measured(root):
    """What is counted, by the names of the limits, and a line for each thing behind the counts of 0 to 100."""
    counts, told, seen = Counter(), [], set()
    for crate, name in CRATES.items():
        files = []
        for path in sorted((root / crate).rglob("*.rs")):
            shown = path.relative_to(root)
            if shown in seen or path.stem in ("tests", "test_support", "build") or "tests" in shown.parts or path.stem.endswith("_tests"):
                continue
            seen.add(shown)
            files.append(File(shown, Path(crate), path.read_text("utf-8")))
        counts[f"code.{name}"] = sum(file.lines for file in files)
        counts["comments"] += sum(file.comments for file in files)
        found = list(circles(Crate(files).links()))
        counts["circles"] += len(found)
        told += found
        for file in files:
            for function, line, lines, parameters, depth in functions(file):
                where = f"{file.path}:{line}: {function}"
                for limit, over, what in (
                    ("functions_over_60", lines > 60, f"{lines} lines of code"),
                    ("functions_over_100", lines > 100, f"{lines} lines of code"),
                    ("parameters_over_6", parameters > 6, f"{parameters} parameters"),
                    ("nesting_over_6", depth > 6, f"{depth} levels of nesting"),
                ):
                    counts[limit] += over
                    if over:
                        told.append(f"{limit}: {where}: {what}")
    found = list(circles(script_links(sorted((root / "src").rglob("*.js")))))
    counts["circles"] += len(found)
    documents = [*root.glob("*.md"), *root.glob("docs/*.md")]
    counts["documents"] = sum(len(path.read_text("utf-8").split("\n")) - 1 for path in documents)
    return counts, told + found


def faults(counts, limits):
    """A line for every limit that does not hold."""
    for name, limit in limits.items():
        if counts[name] > limit:
            yield f"{name}: {counts[name]}, {limit} at most; `scripts/ratchet.py --list` names them. Raise it only with the reason in the commit"
        elif limit > counts[name] * 1.01:
            yield f"{name}: {counts[name]} now, so the limit of {limit} can fall: write {counts[name]} into {LIMITS}"
    yield from (f"{name}: no limit in {LIMITS}" for name in counts if name not in limits)


def flattened(table, before=""):
    return {key: value for name, inner in table.items() for key, value in (flattened(inner, f"{before}{name}.") if isinstance(inner, dict) else {before + name: inner}).items()}


SAMPLE = {
    "src/core/lib.rs": "mod a; mod b; mod c; mod d; mod e; pub use a::A; fn f() { e::f(E) } pub struct E;",
    "src/core/e.rs": "use crate::E; pub fn f(e: E) {}",
    "src/core/a.rs": "pub struct A;\nuse super::b::{self, B as Other};\n// fn comment(\nconst TEXT: &str = \"fn text(\";",
    "src/core/b.rs": "pub struct B; fn f(a: crate::A) {}",
    # No circles: a test names what builds on the file, and a module (above) wires its submodules.
    "src/core/c.rs": "pub struct C;\n#[cfg(test)]\nmod tests {\n    use crate::d::D;\n}",
    "src/core/d.rs": "pub struct D; use crate::c::C;\nfn long(a: u8, b: (u8, u8), c: [u8; 2], d: &dyn Fn(u8, u8) -> u8, e: u8, E { f, .. }: E, g: Vec<(u8, u8)>) {\n"
    + "    f();\n" * 59 + "    { { { { { { g() } } } } } }\n}",
    "src/serve/x.js": 'import { y } from "./y.js";',
    "src/serve/y.js": 'import {\n  x,\n} from "./x.js";',
}
WANTED = {"circles": 2, "functions_over_60": 1, "functions_over_100": 0, "parameters_over_6": 1, "nesting_over_6": 1, "code.core": 70}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SAMPLE.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text, "utf-8")
        counts, _ = measured(Path(folder))
    wrong = [f"{name}: {counts[name]} counted in the sample, {count} are right" for name, count in WANTED.items() if counts[name] != count]
    told = [line.split(":")[0] for line in faults(Counter(a=3, b=100, c=90, d=1), {"a": 2, "b": 101, "c": 100})]
    return wrong + ([] if told == ["a", "c", "d"] else [f"limits told: {told}"])


def main(arguments):
    if arguments == ["--self-test"]:
        lines = self_test()
    else:
        counts, told = measured(ROOT)
        if arguments == ["--list"]:
            print("\n".join([*told, *(f"{name} = {count}" for name, count in sorted(counts.items()))]))
            return 0
        lines = list(faults(counts, flattened(tomllib.loads((ROOT / LIMITS).read_text("utf-8")))))
    print("\n".join(lines) if lines else "the limits hold")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
