#!/usr/bin/env python3
"""Measures the errors and densities that the documents state, with the program, on the CPU.

Tables say themselves how they are made: the first cells of a row name its flags. Prints the rows with the figures
measured; --check shows only those that differ, --write puts them into the documents. Times and other columns stay as they
are. Without DATA, only figures of the demo scene are measured. Exit status 1 if a figure differs.

    scripts/figures.py target/release/stereod DATA --check
    scripts/figures.py target/release/stereod DATA --only "## Costs and paths | `--cost mi"
"""

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
STILLS = ["more/middlebury_2005_2006_half", "more/middlebury_2005_2006_third", "more/middlebury_v3_quarter",
          "more/sceneflow_flyingthings"]
ROOMS = "more/middlebury_v3_quarter_no_truth"
SETS = {
    "v2": ["middlebury_v2"],
    "kitti": ["kitti2015"],
    "stills": STILLS,
    "all": ["middlebury_v2", "kitti2015", *STILLS, "more/tartanair_clip"],
    "tiled": ["middlebury_v2", "middlebury_2006", "kitti2015", *STILLS[:3]],
}
KNOWN, WRONG, DENSE, D1 = "unfilled density", "unfilled bad1.0_valid", "dense bad1.0", "dense d1"
ROOM, RESIDUAL = ("rooms", "map density"), "map plane_residual"
BARE = "--subpixel off --uniqueness 0 --left-right off --median 0 --speckle-size 0 --evidence off --spatial off"
MEANS = [("v2", DENSE), ("kitti", D1), ("stills", KNOWN), ("stills", WRONG), ("stills", DENSE)]
LOCAL = [[(f"v2 --block-window {window} {flags}", "dense bad1.0 all") for flags in (BARE, "--subpixel off")] for window in (3, 5, 7, 9, 11)]
SHARES = [f"{part} {key}" for part in ("unfilled", "dense") for key in ("bad0.5", "bad1.0", "bad2.0", "bad4.0", "d1")]

# Page, beginning of the heading, flags of a row ({0} and {1} are its first cells), and figures of its last columns: a set with
# further flags, and a path in the program's report. A list is the end of a cell "a / b"; None is not measured here.
TABLES = [
    ("accuracy.md", "## Defaults", "", [("{0}", path) for path in [KNOWN, WRONG, "unfilled nearer_valid", *SHARES]]),
    ("accuracy.md", "## Presets", "{0}", [None, *MEANS, ROOM, None, None]),
    ("accuracy.md", "## Contribution", "{0}", [*MEANS, ("v2 --noise 5", DENSE), ("v2 --noise 10", DENSE)]),
    ("accuracy.md", "## Smoothed", "--spatial {0}",
     [("v2", DENSE), ("kitti", D1), ("stills", DENSE), *((name, RESIDUAL) for name in ("v2", "kitti", "stills", "rooms"))]),
    ("accuracy.md", "**Thresholds", "--min-confidence {0}", [("stills", KNOWN), ("stills", WRONG)]),
    ("accuracy.md", "## Costs and paths", "{0}",
     [("v2", DENSE), ("v2 --subpixel off", DENSE), ("kitti", D1), ("kitti --subpixel off", D1)]),
    ("accuracy.md", "## Local matching", "--paths 0 --cost {0}", LOCAL),
    ("accuracy.md", "## Tiles", "{0}", [("tiled", "unfilled bad1.0 all"), ("tiled", "dense bad1.0 all"), None, None]),
    ("accuracy.md", "**Rigs that drift", "--set demo.noise={0} {1}", [("demo", "bad_1"), None, None, None, None]),
]
# Page, text around figures (#), and these.
SENTENCES = [
    ("why.md", "stereod # % and # %", [("middlebury_v2/teddy", KNOWN), ("middlebury_v2/teddy", WRONG)]),
    ("outputs.md", "# instead of # % of six rooms", [("rooms --fill gaps", "map density"), ROOM]),
    ("outputs.md", "# instead of # % of the stills", [("stills --fill gaps", "map density"), ("stills", "map density")]),
    ("outputs.md", "# instead of # % of KITTI", [("kitti --fill gaps", "map density"), ("kitti", "map density")]),
]


class Program:
    def __init__(self, stereod, data):
        self.stereod, self.data = stereod, data
        # Nobody's own settings.
        own = {name: value for name, value in os.environ.items() if not name.startswith("STEREOD_")}
        self.environment = {**own, "XDG_CONFIG_HOME": "/nonexistent"}

    @functools.cache
    def report(self, *arguments):
        command = [self.stereod, *arguments, "--engine", "cpu"]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        return json.loads(done.stdout) if done.returncode == 0 else sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")

    @functools.cache
    def items(self, name, flags):
        """Returns the report on each pair of a set."""
        with tempfile.TemporaryDirectory() as scratch:
            # Pairs without truth need an item.json.
            for found in self.data.glob(f"{ROOMS}/*/pair.json") if name == "rooms" else []:
                item = {**json.loads(found.read_text()), "gt": None}
                item = {key: item[key] if key in ("gt", "ndisp") else str(found.with_name(item[key])) for key in ("left", "right", "gt", "ndisp")}
                Path(scratch, found.parent.name).mkdir()
                Path(scratch, found.parent.name, "item.json").write_text(json.dumps(item))
            folders = [scratch] if name == "rooms" else [str(self.data / folder) for folder in SETS.get(name, [name])]
            report = self.report("evaluate", *folders, "--repeat", "1", "--json", "-", *flags)
        return [item for dataset in report["datasets"] for item in dataset["items"]]

    def figure(self, flags, where, path):
        """Returns the mean over a set, of the pixels that both views see (all of them without a mask); None without data."""
        (name, *more), (part, *keys) = where.split(), path.split()
        flags = (*flags, *more)
        if name == "demo":
            demo = ("run", "--demo", "--headless", "--frames", "30", "-d", "64", "-q", "--stats", "-")
            return self.report(*demo, *flags)["accuracy"][part]
        if not self.data:
            return None
        found = [item[part] for item in self.items(name, flags)]
        if part != "map":
            found = [regions[keys[-1] if keys[1:] else "nonocc"] or regions["all"] or regions["nonocc"] for regions in found]
        return sum(figures[keys[0]] for figures in found) / len(found)

    def renewed(self, text, flags, columns):
        """Returns a text whose last figures are measured anew, to as many digits."""
        places = list(re.finditer(r"\d+\.\d+|\d+", text))[-len(columns):]
        for place, column in reversed(list(zip(places, columns))):
            figure = column and self.figure(flags, *column)
            if figure is not None:
                text = f"{text[:place.start()]}{figure:.{len(place[0].partition('.')[2])}f}{text[place.end():]}"
        return text

    def row(self, line, flags, columns):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        first = cells[: len(cells) - len(columns)]
        named = [" ".join(re.findall("`(.*?)`", cell)) or ("" if cell.startswith(("none", "off")) else cell) for cell in first]
        for place, column in enumerate(columns, len(first)):
            column = column if isinstance(column, list) else [column and (column[0].format(*named), column[1])]
            cells[place] = self.renewed(cells[place], tuple(flags.format(*named).split()), column)
        return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stereod", help="the program")
    parser.add_argument("data", nargs="?", type=Path, help="folder of the data sets")
    parser.add_argument("--check", action="store_true", help="only show what differs")
    parser.add_argument("--write", action="store_true", help="put the figures into the documents")
    parser.add_argument("--only", action="append", help="what has this text: a sentence, or a heading and a row behind it")
    options = parser.parse_args()
    program, differs = Program(options.stereod, options.data), False

    def compare(page, old, new):
        nonlocal differs
        differs |= old != new
        if old != new or not options.check:
            print(f"{page}: {new}", flush=True)
        if options.write:
            (DOCS / page).write_text((DOCS / page).read_text("utf-8").replace(old, new, 1), "utf-8")

    def is_wanted(text):
        return not options.only or any(only in text for only in options.only)

    for page, heading, flags, columns in TABLES:
        text = (DOCS / page).read_text("utf-8")
        rows = re.search(r"^\| --- .*\n((?:\|.*\n)+)", text[text.index(f"\n{heading}"):], re.M)[1].splitlines()
        for line in (line for line in rows if is_wanted(f"{heading} {line}")):
            compare(page, line, program.row(line, flags, columns))
    for page, around, columns in (sentence for sentence in SENTENCES if is_wanted(sentence[1])):
        pattern = r"\s+".join(re.escape(word).replace(r"\#", r"[\d.]+") for word in around.split())
        sentence = re.search(pattern, (DOCS / page).read_text("utf-8"))[0]
        compare(page, sentence, program.renewed(sentence, (), columns))
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
