#!/usr/bin/env python3
"""Measures how many thin things are found with range windows and without (docs/accuracy.md).

Rods, wires, twigs, fences and fingers of several widths stand before a textured or an even ground, nearer than it by 4
to 90 px (640x480, 128 disparities). A figure is the share of their pixels whose disparity is found within 1 px, and
that of those that got a wrong one, by grey levels of noise; "most lost" is the scene where windows lose most. Folders
of pairs with truth (item.json) are measured instead, if given: at pixels that are nearer than others on both sides in
their row. Needs NumPy and OpenCV.

    scripts/thin_things.py target/release/stereod [DATA/kitti2015 ...]
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import tempfile

import cv2
import numpy as np

WIDTH, HEIGHT = 640, 480
GROUND = 18  # its disparity, and a part of a pixel
NEARER = (4, 8, 16, 24, 36, 50, 70, 90)
WIDTHS = (1, 2, 3, 5)
NOISES = (1.5, 5)
REACH, STEP = 10, 4  # px from a pixel to what is seen past its thing, and how much nearer the thing is


# Things are lists of segments (x0, y0, x1, y1, width).
def rods(random, width):
    slant = random.choice([0, 0.3, -0.7]) * HEIGHT / 2
    return [[(x - slant, 0, x + slant, HEIGHT, width)] for x in range(130, 620, 56) + random.uniform(-8, 8, 9)]


def wires(random, width):
    xs = np.arange(-80, 800, 20)
    sag = 30 - 30 * ((xs + random.uniform(0, 300)) % 300 / 150 - 1) ** 2
    points = [np.stack([xs, y + sag + random.uniform(-0.25, 0.25) * xs], 1) for y in range(-30, HEIGHT, 60)]
    return [[(*a, *b, width) for a, b in itertools.pairwise(of)] for of in points]


def twigs(random, width):
    def twig(x, y, angle, forks):
        x1, y1 = (x, y) + random.uniform(20, 50) * np.array([np.sin(angle), -np.cos(angle)])
        turns = random.uniform(0.2, 0.9, 2) * (1, -1) if forks else ()
        return sum((twig(x1, y1, angle + turn, forks - 1) for turn in turns), [(x, y, x1, y1, width)])

    places = itertools.product(range(130, WIDTH, 100), (170, 320, 470))
    return [twig(x, y, random.uniform(-1.2, 1.2), 3) for x, y in places]


def fences(random, width):
    def fence(y, slope):
        posts = [(x, y + slope * x) for x in range(0, 780, 28) + random.uniform(-6, 6, 28)]
        bars = [(0, y + bar, 800, y + bar + slope * 800, width) for bar in (30, 120)]
        return bars + [(x, top, x, top + 150, width) for x, top in posts]

    return [fence(60, 0.2), fence(280, -0.1)]


def fingers(random, width):
    def hand(x, y, turn):
        angles = turn + np.linspace(-0.8, 0.8, 5)
        return [(x, y, x + 60 * np.sin(a), y - 60 * np.cos(a), width) for a in angles] + [(x, y, x, y + 15, 40)]

    return [hand(x, y, random.uniform(-0.6, 0.6)) for x in range(170, WIDTH, 120) for y in (90, 240, 400)]


def texture(random, size):
    """Returns smooth noise of this size in pixels, as a function of columns."""
    grid = random.random((HEIGHT // size + 3, (WIDTH + 300) // size + 3))
    row, part = np.divmod(np.arange(HEIGHT) / size, 1)
    rows = grid[row.astype(int)] + np.diff(grid, axis=0)[row.astype(int)] * part[:, None]

    def at(x):
        column, part = np.divmod((x + 150) / size, 1)
        return rows[:, column.astype(int)] + np.diff(rows)[:, column.astype(int)] * part

    return at


def draw(things, ground, width, nearer):
    """Returns both views without noise, and the disparity of thin things in the left one (0 elsewhere)."""
    random = np.random.default_rng(1000 * width + nearer)
    fine, middle, wide, surface = (texture(random, size) for size in (3, 5, 40, 3))
    far, disparity = (GROUND, GROUND + nearer) + random.random(2)
    things = [(random.choice([20, 215]), thing) for thing in things(random, width)]
    views = []
    for shifts in ((0, 0), (far, disparity)):
        x = np.arange(WIDTH) + shifts[0]
        view = 120 + 4 * middle(x) + 10 * wide(x)
        if ground == "textured":
            view = 60 + 110 * (0.55 * fine(x) + 0.3 * middle(x) + 0.15 * wide(x))
        x = np.arange(WIDTH) + shifts[1]
        relief, seen = 40 * (surface(x) - 0.5), np.zeros(view.shape)
        for grey, (x0, y0, x1, y1, thick) in ((grey, segment) for grey, thing in things for segment in thing):
            rows = slice(max(0, int(min(y0, y1) - thick)), max(0, int(max(y0, y1) + thick) + 2))
            y = np.arange(HEIGHT)[rows, None]
            along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2), 0, 1)
            distance = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
            covered = np.clip(thick / 2 + 0.5 - distance, 0, 1)
            view[rows] += covered * (grey + relief[rows] - view[rows])
            seen[rows] = np.maximum(seen[rows], covered) if thick == width else seen[rows] * (1 - covered)
        views.append((view, seen))
    (left, seen), (right, _) = views
    return left, right, disparity * ((seen > 0.5) & (np.arange(WIDTH) > disparity + 4))


def thin_of(truth):
    """Returns the disparities of thin things, and 0 elsewhere."""
    past = np.where(truth > 0, truth, np.inf)
    left, right = (cv2.erode(past, np.ones((1, REACH + 1)), anchor=(at, 0)) for at in (REACH, 0))
    return truth * (np.maximum(left, right) <= truth - STEP)


def match(program, folder, pair, truth, count):
    """Returns where a pair is found and wrong in the whole range, and with windows, of the pixels with truth."""
    figures = []
    for windows in ("off", "auto"):
        flags = ["--disparities", str(count), "--windows", windows, "--engine", "cpu", "--quiet"]
        subprocess.run([program, "match", *pair, "--output", f"{folder}/map.png", *flags], check=True)
        values = cv2.imread(f"{folder}/map.png", cv2.IMREAD_UNCHANGED)[truth > 0] / 256
        found = (values > 0) & (abs(values - truth[truth > 0]) <= 1)
        figures += [found, (values > 0) & ~found]
    return np.array(figures)


def cells(figures):
    """Returns columns of a table: found / wrong in percent, in the whole range and with windows."""
    return "{:.1f} / {:.1f} | {:.1f} / {:.1f}".format(*100 * figures.mean(axis=1))


def measure_made(program, folder):
    heads = [f"{noise}: whole range | windows" for noise in NOISES]
    print(f"| ground | things | width | {' | '.join(heads)} | most lost at | whole range | windows |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    pair = [f"{folder}/left.png", f"{folder}/right.png"]
    scenes = itertools.product(("textured", "even"), (rods, wires, twigs, fences, fingers), WIDTHS)
    for ground, things, width in scenes:
        figures = {}
        for nearer, noise in itertools.product(NEARER, NOISES):
            *views, truth = draw(things, ground, width, nearer)
            random = np.random.default_rng(nearer)
            for path, view in zip(pair, views, strict=True):
                view = np.clip(np.rint(view + random.normal(0, noise, view.shape)), 0, 255)
                cv2.imwrite(path, view.astype(np.uint8))
            figures[noise, nearer] = match(program, folder, pair, truth, 128)
        means = [cells(np.hstack([figures[noise, nearer] for nearer in NEARER])) for noise in NOISES]
        worst = max(figures, key=lambda scene: figures[scene][0].mean() - figures[scene][2].mean())
        columns = [ground, things.__name__, f"{width} px", *means, "{}, {} px".format(*worst), cells(figures[worst])]
        print(f"| {' | '.join(columns)} |", flush=True)


def measure_data(program, folder, data):
    print("| pairs | thin pixels | whole range | windows |\n| --- | ---: | ---: | ---: |")
    for of in data:
        figures = []
        for path in of.rglob("item.json"):
            item = json.loads(path.read_text())
            truth = cv2.imread(str(path.parent / item["gt"]), cv2.IMREAD_UNCHANGED) / item["gt_scale"]
            pair = [path.parent / item[side] for side in ("left", "right")]
            figures.append(match(program, folder, pair, thin_of(truth), item["ndisp"]))
        figures = np.hstack(figures)
        print(f"| {of.name} | {figures.shape[1]} | {cells(figures)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program stereod")
    parser.add_argument("data", nargs="*", type=pathlib.Path, help="folders of pairs with truth")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.data:
            measure_data(args.program, folder, args.data)
        else:
            measure_made(args.program, folder)


if __name__ == "__main__":
    main()
