#!/usr/bin/env python3
"""The CPU engine beside OpenCV's StereoSGBM MODE_HH (8 paths), on this machine, in one run.

The two run in turns, so that whatever else the machine does meets both. OpenCV uses all of its
threads. Needs opencv-python-headless and numpy, and a release build of stereod.

    scripts/bench_opencv.py                        # the sizes that the README states
    scripts/bench_opencv.py --size 640x480:64 --require 6
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

DEFAULT_SIZES = ["640x480:64", "1280x720:128", "1920x1080:128"]


def parse_size(text):
    """(width, height, disparities) of "WxH:D"."""
    try:
        size, disparities = text.split(":")
        width, height = size.split("x")
        return int(width), int(height), int(disparities)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form 640x480:64")


def random_pair(numpy, width, height):
    """A random texture whose disparity changes every 40 rows."""
    rng = numpy.random.default_rng(1)
    margin = 64
    scene = rng.integers(0, 256, (height, width + margin), dtype=numpy.uint8)
    left = numpy.ascontiguousarray(scene[:, :width])
    shifts = 12 + numpy.arange(height) // 40 % 20
    rows = [scene[y, s : s + width] for y, s in enumerate(shifts)]
    return left, numpy.ascontiguousarray(numpy.stack(rows))


def time_opencv(matcher, left, right, repeats):
    """Milliseconds of each of `repeats` runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        matcher.compute(left, right)
        times.append((time.perf_counter() - start) * 1000)
    return times


def time_stereod(program, width, height, disparities):
    """Median and best milliseconds of one `stereod bench`."""
    command = [program, "bench", "--size", f"{width}x{height}", "--disparities", str(disparities),
               "--paths", "8", "--engine", "cpu", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    try:
        result = json.loads(done.stdout)
        return float(result["total_ms"]), float(result["best_ms"])
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{' '.join(command)} printed no object with total_ms and best_ms ({error})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--stereod", default=os.path.join(here, "..", "target", "release", "stereod"),
                        help="the program (default: target/release/stereod)")
    parser.add_argument("--size", type=parse_size, action="append", metavar="WxH:D",
                        help=f"may be repeated (default: {' '.join(DEFAULT_SIZES)})")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--repeats", type=int, default=3, help="OpenCV's runs a turn (default: 3)")
    parser.add_argument("--require", type=float, metavar="RATIO",
                        help="exit with 1 where stereod's best is not this many times as fast")
    parser.add_argument("--json", action="store_true", help="print a JSON list, not a table")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.repeats < 1:
        parser.error("--rounds and --repeats must be at least 1")
    if not os.access(arguments.stereod, os.X_OK):
        sys.exit(f"no program at {arguments.stereod}; build it with `cargo build --release`")
    try:
        import cv2
        import numpy
    except ImportError as error:
        sys.exit(f"{error}; `python3 -m pip install opencv-python-headless numpy` installs it")

    rows = []
    for width, height, disparities in arguments.size or map(parse_size, DEFAULT_SIZES):
        if disparities % 16:
            sys.exit(f"OpenCV needs a multiple of 16 disparities, not {disparities}")
        left, right = random_pair(numpy, width, height)
        matcher = cv2.StereoSGBM_create(minDisparity=0, numDisparities=disparities, blockSize=5,
                                        P1=200, P2=800, disp12MaxDiff=1,
                                        mode=cv2.STEREO_SGBM_MODE_HH)
        matcher.compute(left, right)  # Memory is allocated in the first run.
        opencv, medians, bests = [], [], []
        for _ in range(arguments.rounds):
            opencv += time_opencv(matcher, left, right, arguments.repeats)
            median, best = time_stereod(arguments.stereod, width, height, disparities)
            medians.append(median)
            bests.append(best)
        rows.append({
            "size": f"{width}x{height}", "disparities": disparities,
            "opencv_median_ms": statistics.median(opencv), "opencv_best_ms": min(opencv),
            "stereod_median_ms": statistics.median(medians), "stereod_best_ms": min(bests),
            "ratio_median": statistics.median(opencv) / statistics.median(medians),
            "ratio_best": min(opencv) / min(bests),
        })

    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"OpenCV {cv2.__version__} StereoSGBM MODE_HH, {cv2.getNumThreads()} threads; "
              "milliseconds, best (median)")
        print("| size | D | OpenCV | stereod | times as fast |")
        print("| --- | --- | --- | --- | --- |")
        for r in rows:
            print(f"| {r['size']} | {r['disparities']} "
                  f"| {r['opencv_best_ms']:.1f} ({r['opencv_median_ms']:.1f}) "
                  f"| {r['stereod_best_ms']:.2f} ({r['stereod_median_ms']:.2f}) "
                  f"| {r['ratio_best']:.1f} ({r['ratio_median']:.1f}) |")
    if arguments.require is not None:
        slow = [r for r in rows if r["ratio_best"] < arguments.require]
        for r in slow:
            print(f"{r['size']}: {r['ratio_best']:.1f} times as fast; "
                  f"{arguments.require:g} were required", file=sys.stderr)
        sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
