#!/usr/bin/env python3
"""Compares stereod with the figures of the texts it is based on, as Markdown tables.

The bachelor thesis on local stereo matching (Czech, tables 5.1.2, 5.2.3, 5.3.4 and 5.4.5) gives the percentage of all
pixels that are wrong by more than 1 px, for SSD, SAD and census with windows of 3 to 11 pixels, on Middlebury version 2.
Each cell: thesis (if it has the figure) / stereod, winner takes all only / stereod with checks and filters, holes filled
by row. Exits with 1 if the last figure is worse than the thesis's.

    scripts/text_tables.py ../shared/data/middlebury_v2            # the folder with tsukuba, venus, teddy and cones
    scripts/text_tables.py --stereod target/release/stereod --engine cpu DATA/middlebury_v2
"""

import argparse
import json
import pathlib
import subprocess
import sys

SCENES = ["cones", "teddy", "tsukuba", "venus"]
# Percent of wrong pixels by window, in the order of SCENES.
THESIS = {
    "ssd": {3: [43.0, 41.5, 19.7, 29.4], 5: [31.5, 34.3, 16.7, 22.6], 7: [27.9, 32.1, 16.9, 20.8], 11: [27.6, 33.0, 19.5, 20.6]},
    "sad": {3: [47.0, 43.4, 19.5, 30.1], 5: [35.4, 35.4, 15.4, 22.8], 7: [30.7, 32.6, 14.6, 20.2], 11: [27.5, 31.8, 15.9, 19.4]},
    "census": {3: [69.5, 74.6, 54.6, 55.7], 5: [38.5, 50.2, 35.3, 36.6], 7: [29.3, 40.5, 28.8, 27.2], 11: [27.7, 35.3, 23.8, 20.7]},
}
WINDOWS = [3, 5, 7, 9, 11]
# What stereod matches beside it. The thesis compares census descriptors of the window alone; ours are 9x7-symmetric
# ones, added up over the window.
COSTS = ["ssd", "sad", "census", "zssd", "zsad", "ad", "combined"]
# Winner takes all without filters, as in the thesis.
BARE = ["--subpixel", "off", "--uniqueness", "0", "--left-right", "off", "--median", "0", "--speckle-size", "0",
        "--evidence", "off", "--spatial", "off"]
WHOLE = ["--subpixel", "off"]


def wrong(stereod, data, arguments):
    """Returns the percentage of pixels with truth that are wrong by more than 1 px, by scene; holes are filled."""
    command = [stereod, "evaluate", "--repeat", "1", "--json", "-", *arguments]
    command += [str(data / scene) for scene in SCENES]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()}")
    items = [item for dataset in json.loads(run.stdout)["datasets"] for item in dataset["items"]]
    by_scene = {item["item"]: item["dense"]["all"]["bad1.0"] for item in items}
    return [by_scene[scene] for scene in SCENES]


def row(cells):
    return "| " + " | ".join(cells) + " |"


def with_mean(values):
    return [*values, sum(values) / len(values)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="folder of Middlebury version 2")
    parser.add_argument("--stereod", default="stereod", help="the program")
    parser.add_argument("--engine", default="auto", help="its engine")
    options = parser.parse_args()

    print(row(["cost", "window", "cones", "teddy", "Tsukuba", "Venus", "mean"]))
    print(row(["---"] + ["---:"] * 6))
    behind = []
    for cost in COSTS:
        for window in WINDOWS:
            local = ["--engine", options.engine, "--cost", cost, "--paths", "0", "--block-window", str(window)]
            bare = wrong(options.stereod, options.data, local + BARE)
            refined = wrong(options.stereod, options.data, local + WHOLE)
            theirs = THESIS.get(cost, {}).get(window)
            columns = [values for values in (theirs, bare, refined) if values]
            cells = zip(*(with_mean(values) for values in columns))
            print(row([f"`{cost}`", str(window)] + [" / ".join(f"{value:.1f}" for value in cell) for cell in cells]))
            behind += [
                f"{cost} {window} {scene}: bare {b:.1f}, with checks and filters {r:.1f}, thesis {t:.1f}"
                for scene, b, r, t in zip(SCENES, bare, refined, theirs or [])
                if r > t
            ]
    for line in behind:
        print(f"behind the thesis: {line}", file=sys.stderr)
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
