#!/usr/bin/env python3
"""Measures how right `stereod match` is on still pairs with known disparity.

  accuracy.py BINARY DATA_DIR [--keep DIR] [--only middlebury|kitti] [--cost COST]... [-- FLAG...]

BINARY    the stereod binary, e.g. target/release/stereod
DATA_DIR  the test data folder: score.py, middlebury_v2/ and kitti2015/
FLAG...   passed on to `stereod match`, e.g. --p2 100; without any, its defaults are measured

Every pair is matched with every cost (or those that --cost names), with 5 and 8 paths, with and without
sub-pixel interpolation, and scored by
score.py with its `--fill kitti` (holes take the smaller neighbour of their row). Prints a table in
Markdown: bad pixels (error above 1 px, non-occluded) in percent for Middlebury, D1 (error above
3 px and 5 %) for KITTI. Exits with 1 where Tsukuba, with `combined` or `ad` and without sub-pixel, is
not below 3.5 %.
Needs Python 3 with numpy and OpenCV or imageio, for score.py.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

# The search range that the publishers of each pair give.
DISPARITIES = {"tsukuba": 16, "venus": 20, "teddy": 60, "cones": 60}
KITTI_DISPARITIES = 128
TSUKUBA_LIMIT = 3.5
LIMITED = ("combined", "ad")

# The costs, and the flags of `stereod match` that choose them.
COSTS = {
    "combined": ["--cost", "combined"],
    "census-9x7-symmetric": ["--cost", "census", "--census-window", "9x7-symmetric"],
    "census-5x5": ["--cost", "census", "--census-window", "5x5"],
    "ad": ["--cost", "ad"],
}


def fail(message):
    sys.exit("accuracy.py: " + message)


def run(command):
    """The standard output of a command that must succeed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        fail("cannot run %s: %s" % (command[0], error))
    if done.returncode != 0:
        fail("%s failed:\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


def find_items(data, only):
    """(title, folder, number of disparities, figure of score.py) of every pair."""
    items = []
    if only != "kitti":
        for name, disparities in DISPARITIES.items():
            folder = os.path.join(data, "middlebury_v2", name)
            items.append((name.capitalize(), folder, disparities, "bad1.0"))
    if only != "middlebury":
        root = os.path.join(data, "kitti2015")
        names = sorted(os.listdir(root)) if os.path.isdir(root) else []
        for name in names:
            folder = os.path.join(root, name)
            if os.path.isdir(folder):
                items.append((name, folder, KITTI_DISPARITIES, "d1"))
        if not names:
            fail("no pairs in %s" % root)
    for _, folder, _, _ in items:
        if not os.path.exists(os.path.join(folder, "item.json")):
            fail("no item.json in %s" % folder)
    return items


def error_of(options, item, cost, paths, subpixel, folder):
    """One pair, matched and scored, in percent."""
    title, item_folder, disparities, figure = item
    with open(os.path.join(item_folder, "item.json")) as file:
        files = json.load(file)
    left, right = (os.path.join(item_folder, files[eye]) for eye in ("left", "right"))
    kind = "subpixel" if subpixel else "whole"
    out = os.path.join(folder, "%s_%s_%d_%s.png" % (title, cost, paths, kind))
    run([options.binary, "match", left, right, "-o", out,
         "--disparities", str(disparities), "--paths", str(paths),
         "--subpixel", "true" if subpixel else "false"] + COSTS[cost] + options.flags)
    score = os.path.join(options.data, "score.py")
    result = json.loads(run([sys.executable, "-B", score, item_folder, out, "--fill", "kitti"]))
    return result["nonocc"][figure]


def mean(values):
    return sum(values) / len(values)


def main():
    arguments = sys.argv[1:]
    flags = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--keep", metavar="DIR", help="keep the disparity maps there")
    parser.add_argument("--only", choices=("middlebury", "kitti"))
    parser.add_argument("--cost", choices=list(COSTS), action="append", dest="costs")
    options = parser.parse_args(arguments)
    options.flags = flags
    items = find_items(options.data, options.only)
    titles = [item[0] for item in items if item[3] == "bad1.0"]
    kitti = any(item[3] == "d1" for item in items)

    columns = titles + (["mean"] if titles else []) + (["KITTI D1, mean"] if kitti else [])
    print("| cost | paths | sub-pixel | " + " | ".join(columns) + " |")
    print("| --- " * (len(columns) + 3) + "|")
    missed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        runs = itertools.product(options.costs or COSTS, (5, 8), (False, True))
        for cost, paths, subpixel in runs:
            errors = {item[0]: error_of(options, item, cost, paths, subpixel, folder)
                      for item in items}
            figures = [errors[title] for title in titles]
            if titles:
                figures.append(mean(figures))
            if kitti:
                figures.append(mean([errors[item[0]] for item in items if item[3] == "d1"]))
            row = ["%.2f" % figure for figure in figures]
            print("| %s | %d | %s | %s |"
                  % (cost, paths, "on" if subpixel else "off", " | ".join(row)), flush=True)
            if cost in LIMITED and not subpixel:
                missed |= errors.get("Tsukuba", 0.0) >= TSUKUBA_LIMIT
    if missed:
        fail("Tsukuba without sub-pixel is not below %.1f %%" % TSUKUBA_LIMIT)


if __name__ == "__main__":
    main()
