#!/usr/bin/env python3
"""Draws the pairs that the network of `--prior network` gets most wrong, one a row (docs/images/network_errors.jpg).

A row has the left image, the truth, the map of `--fill rays`, that of `--prior network --fill network+rays`, and the left
image with the latter's wrong pixels (D1) in red, where most of them are. At most four pairs are of one data set. Needs
NumPy and OpenCV.

    scripts/worst_pairs.py target/release/stereod DATA -o docs/images/network_errors.jpg
"""

import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

import cv2
import numpy as np

WAYS = ["--fill", "rays"], ["--prior", "network", "--fill", "network+rays"]
ROWS, OF_A_SET, WINDOW, SHOWN = 10, 4, (359, 223), (280, 174)


def truth_of(item, folder):
    """Returns the true disparity in px, NaN if it is not known, and where both views see."""
    if item["gt"].endswith(".npy"):
        truth = np.load(folder / item["gt"]).astype(np.float32)
    else:
        stored = cv2.imread(str(folder / item["gt"]), cv2.IMREAD_UNCHANGED)
        stored = stored if stored.ndim == 2 else stored[..., 0]
        truth = stored / np.float32(item.get("gt_scale") or (256 if stored.dtype == np.uint16 else 1))
        truth[stored == item.get("gt_invalid", 0)] = np.nan
    truth[~np.isfinite(truth)] = np.nan
    seen = np.isfinite(truth)
    if mask := (item.get("masks") or {}).get("nonocc"):
        seen &= cv2.imread(str(folder / mask), cv2.IMREAD_GRAYSCALE) == 255
    return truth, seen


def match(program, pair, disparities):
    """Returns the map of each way."""
    maps = []
    with tempfile.TemporaryDirectory() as scratch:
        for way in WAYS:
            command = [program, "match", *pair, "-d", str(disparities), "-o", f"{scratch}/map.npy", "-q", *way]
            subprocess.run(command, check=True)
            maps.append(np.load(f"{scratch}/map.npy"))
    return maps


def row_of(left, truth, maps, wrong):
    """Draws the window with most wrong pixels."""
    across, down = (min(side, whole) for side, whole in zip(WINDOW, truth.shape[::-1], strict=True))
    sums = cv2.boxFilter(wrong.astype(np.float32), -1, (across, down), borderType=cv2.BORDER_CONSTANT)
    y, x = np.unravel_index(sums.argmax(), sums.shape)
    y, x = (int(np.clip(at - n // 2, 0, all_ - n)) for at, n, all_ in zip((y, x), (down, across), truth.shape, strict=True))
    window = np.s_[y : y + down, x : x + across]
    low, high = np.nanpercentile(truth[window], [1, 99]) * [0.8, 1]

    def colour(values):
        scaled = np.nan_to_num(np.clip((values - low) / (high - low), 0, 1)) * 255
        return np.where(np.isfinite(values)[..., None], cv2.applyColorMap(scaled.astype(np.uint8), cv2.COLORMAP_TURBO), 0)

    grey = cv2.cvtColor(cv2.cvtColor(left[window], cv2.COLOR_BGR2GRAY) // 2 + 60, cv2.COLOR_GRAY2BGR)
    grey[wrong[window]] = (60, 60, 255)
    parts = [left[window], *(colour(values[window]) for values in (truth, *maps)), grey]
    parts = [cv2.resize(part.astype(np.uint8), SHOWN, interpolation=cv2.INTER_NEAREST if i else cv2.INTER_AREA) for i, part in enumerate(parts)]
    return np.hstack([cv2.copyMakeBorder(part, 0, 3, 0, 3, cv2.BORDER_CONSTANT, value=(255,) * 3) for part in parts])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program stereod")
    parser.add_argument("data", type=pathlib.Path, help="folder of data sets with item.json")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=".jpg or .png")
    args = parser.parse_args()
    found, of_set, rows = [], collections.Counter(), []
    for path in sorted(args.data.rglob("item.json")):
        item, folder = json.loads(path.read_text()), path.parent
        if not item["gt"]:
            continue
        truth, seen = truth_of(item, folder)
        maps = match(args.program, [folder / item[side] for side in ("left", "right")], item["ndisp"])
        # Not known is wrong, too.
        wrong = [seen & ~(abs(values - truth) <= np.maximum(3, 0.05 * truth)) for values in maps]
        shares = [100 * one.sum() / seen.sum() for one in wrong]
        found.append((shares[1], shares[0], folder, (folder / item["left"], truth, maps, wrong[1])))
    for share, before, folder, (left, *drawn) in sorted(found, key=lambda pair: -pair[0]):
        of_set[folder.parent] += 1
        if of_set[folder.parent] <= OF_A_SET and len(rows) < ROWS:
            rows.append(row_of(cv2.imread(str(left)), *drawn))
            print(f"{len(rows)}. {folder.relative_to(args.data)}: {share:.2f} % wrong, {before:.2f} without the network")
    cv2.imwrite(args.output, np.vstack(rows), [cv2.IMWRITE_JPEG_QUALITY, 72])


if __name__ == "__main__":
    main()
