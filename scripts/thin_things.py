#!/usr/bin/env python3
"""Measures how many thin things are found with range windows and without (docs/accuracy.md).

Rods of several widths stand before an even or a textured ground, nearer than it by 4 to 90 px (640x480, 128
disparities). A figure is the share of their pixels whose disparity is found within 1 px, and that of those that got a
wrong one. Needs NumPy and OpenCV.

    scripts/thin_things.py target/release/stereod
"""

import argparse
import pathlib
import subprocess
import tempfile

import cv2
import numpy as np

WIDTH, HEIGHT, FINE = 640, 480, 4  # columns are rendered FINE times as fine, and averaged
GROUND = 18  # its disparity
NEARER = (4, 8, 16, 24, 36, 50, 70, 90)
WIDTHS = (1, 2, 3, 5)
SLANTS = (0, 0.3, -0.7)
NOISES = (1.5, 5)


def texture(random, size):
    """Returns smooth noise of this size in pixels, as a function of columns and a row."""
    grid = random.random((HEIGHT // size + 3, (WIDTH + 300) // size + 3))

    def at(x, y):
        x, y = (x + 150) / size, y / size
        column, row = x.astype(int), int(y)
        above, below = (grid[r, column] + (grid[r, column + 1] - grid[r, column]) * (x - column) for r in (row, row + 1))
        return above + (below - above) * (y - row)

    return at


def write_pair(folder, is_textured, width, nearer, sigma):
    """Writes the pair of a scene, and returns which pixels show a rod, and its disparity."""
    random = np.random.default_rng(1000 * width + nearer)
    fine, middle, wide, of_rod = (texture(random, size) for size in (2, 5, 40, 3))
    centres = np.arange(130, WIDTH - 20, 56) + random.uniform(-8, 8, 9)
    greys, slant = random.choice([20, 215], 9), SLANTS[nearer // 4 % 3]
    columns = (np.arange(WIDTH * FINE) + 0.5) / FINE - 0.5
    disparity = GROUND + nearer
    seen = np.zeros((HEIGHT, WIDTH))
    for name, shifts in [("left", (0, 0)), ("right", (GROUND, disparity))]:
        view = np.zeros((HEIGHT, WIDTH))
        for y in range(HEIGHT):
            x = columns + shifts[0]
            row = 120 + 4 * middle(x, y) + 10 * wide(x, y)
            if is_textured:
                row = 60 + 110 * (0.55 * fine(x, y) + 0.3 * middle(x, y) + 0.15 * wide(x, y))
            x = columns + shifts[1]
            covered = np.zeros(len(x), bool)
            for centre, grey in zip(centres, greys, strict=True):
                rod = abs(x - centre - slant * (y - HEIGHT / 2)) < width / 2 * np.hypot(1, slant)
                row[rod] = grey + 20 * (of_rod(x[rod], y) - 0.5)
                covered |= rod
            view[y] = row.reshape(WIDTH, FINE).mean(1)
            if name == "left":
                seen[y] = covered.reshape(WIDTH, FINE).mean(1)
        view = np.clip(np.rint(view + random.normal(0, sigma, view.shape)), 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / f"{name}.png"), view)
    rods = seen > (0.45 if width == 1 else 0.6)
    rods[:, : disparity + 4] = False
    return rods, disparity


def found(program, folder, rods, disparity, windows):
    """Returns the percentages of a rod's pixels that are found, and that are wrong."""
    pair = [folder / "left.png", folder / "right.png", "--output", folder / "map.png"]
    flags = ["--disparities", "128", "--windows", windows, "--engine", "cpu", "--quiet"]
    subprocess.run([program, "match", *pair, *flags], check=True)
    values = cv2.imread(str(folder / "map.png"), cv2.IMREAD_UNCHANGED)[rods]
    right = (values > 0) & (abs(values / 256 - disparity) <= 1)
    return 100 * right.mean(), 100 * ((values > 0) & ~right).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program stereod")
    program = parser.parse_args().program
    print("| ground | rod | noise | whole range: found / wrong | windows |\n| --- | ---: | ---: | ---: | ---: |")
    for ground in ("textured", "even"):
        for width, sigma in ((width, sigma) for width in WIDTHS for sigma in NOISES):
            shares = {"off": [], "auto": []}
            for nearer in NEARER:
                with tempfile.TemporaryDirectory() as scratch:
                    folder = pathlib.Path(scratch)
                    rods, disparity = write_pair(folder, ground == "textured", width, nearer, sigma)
                    for windows, of in shares.items():
                        of.append(found(program, folder, rods, disparity, windows))
            off, auto = (" / ".join(f"{share:.1f}" for share in np.mean(of, 0)) for of in shares.values())
            print(f"| {ground} | {width} px | {sigma} | {off} | {auto} |", flush=True)


if __name__ == "__main__":
    main()
