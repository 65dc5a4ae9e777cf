#!/usr/bin/env python3
"""Draws pairs of images, one a row: the left image, OpenCV's StereoSGBM and stereod's default.

A pair is a folder with an item.json or a pair.json, which names its images (`left`, `right`) and
its search range (`ndisp`). Both maps of a pair have the same colours; black is unknown. OpenCV
runs MODE_HH (8 paths) with the checks and filters that its documentation suggests. The share of
known pixels is printed. Needs opencv-python-headless and numpy.

    scripts/compare_opencv.py DATA/middlebury_v2/teddy DATA/middlebury_v2/cones -o comparison.jpg
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

try:
    import cv2
    import numpy
except ImportError as error:
    sys.exit(f"{error}; `python3 -m pip install opencv-python-headless numpy` installs it")

BLOCK = 5


def read_pair(folder):
    """The names of both images and the number of disparities."""
    for name in ["item.json", "pair.json"]:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path) as file:
                pair = json.load(file)
            images = [os.path.join(folder, pair[view]) for view in ["left", "right"]]
            return images, pair["ndisp"]
    sys.exit(f"{folder} has neither item.json nor pair.json")


def match_opencv(images, disparities):
    left, right = [cv2.imread(name, cv2.IMREAD_GRAYSCALE) for name in images]
    matcher = cv2.StereoSGBM_create(
        minDisparity=0, numDisparities=disparities, blockSize=BLOCK, P1=8 * BLOCK * BLOCK,
        P2=32 * BLOCK * BLOCK, preFilterCap=63, disp12MaxDiff=1, uniquenessRatio=10,
        speckleWindowSize=100, speckleRange=2, mode=cv2.STEREO_SGBM_MODE_HH)
    disparity = matcher.compute(left, right) / 16
    return numpy.where(disparity < 0, 0, disparity)


def match_stereod(program, images, disparities):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "disparity.pfm")
        subprocess.run([program, "match", *images, "-d", str(disparities), "-o", out, "-q"],
                       check=True)
        disparity = cv2.imread(out, cv2.IMREAD_UNCHANGED)
    return numpy.where(numpy.isfinite(disparity), disparity, 0)


def colour(disparity, low, high):
    scaled = numpy.clip((disparity - low) / (high - low) * 255, 0, 255).astype(numpy.uint8)
    coloured = cv2.applyColorMap(scaled, cv2.COLORMAP_TURBO)
    coloured[disparity == 0] = 0
    return coloured


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "..", "target"))
    parser.add_argument("--stereod", default=os.path.join(target, "release", "stereod"),
                        help="the program (default: target/release/stereod)")
    parser.add_argument("--width", type=int, default=420, help="of each image (default: 420)")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=".jpg or .png")
    parser.add_argument("pairs", nargs="+", metavar="PAIR", help="a folder")
    arguments = parser.parse_args()

    rows = []
    for folder in arguments.pairs:
        images, disparities = read_pair(folder)
        maps = [match_opencv(images, disparities),
                match_stereod(arguments.stereod, images, disparities)]
        known = [100 * numpy.count_nonzero(disparity) / disparity.size for disparity in maps]
        print(f"{os.path.basename(os.path.normpath(folder))}: known {known[0]:.1f} % (OpenCV), "
              f"{known[1]:.1f} % (stereod)")
        low, high = numpy.percentile(maps[1][maps[1] > 0], [1, 99])
        row = [cv2.imread(images[0])] + [colour(disparity, low, high) for disparity in maps]
        height = round(row[0].shape[0] * arguments.width / row[0].shape[1])
        size = (arguments.width, height)
        rows.append(numpy.hstack([cv2.resize(row[0], size, interpolation=cv2.INTER_AREA)] + [
            cv2.resize(image, size, interpolation=cv2.INTER_NEAREST) for image in row[1:]]))
    if not cv2.imwrite(arguments.output, numpy.vstack(rows), [cv2.IMWRITE_JPEG_QUALITY, 85]):
        sys.exit(f"cannot write {arguments.output}")


if __name__ == "__main__":
    main()
