#!/usr/bin/env python3
"""Compares the CPU engine with OpenCV's StereoSGBM, on this machine, in one run.

MODE_HH (8 paths), MODE_SGBM_3WAY (3 paths) and stereod run in turns, so that other load affects
all alike. stereod matches with all refinements on: absolute differences of single pixels along 8
paths, the closest to OpenCV's cost, or its default cost with its prior (`--default`). Needs
opencv-python-headless and numpy, and a release build of stereod.

    scripts/bench_opencv.py                        # the sizes of docs/performance.md
    scripts/bench_opencv.py --threads 1 --simd avx2
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


# Sub-pixel, uniqueness and left-right check are on by default. With these penalties the increase
# of the cost by both horizontal paths fits in a byte.
AD = ["--cost", "ad", "--ad-window", "1", "--paths", "8", "--median", "3", "--p1", "7",
      "--p2", "86", "--p2-mode", "fixed", "--p2-guide", "picture"]


def time_stereod(program, width, height, disparities, options):
    """Median and best milliseconds of one `stereod bench`."""
    command = [program, "bench", "--size", f"{width}x{height}", "--disparities", str(disparities),
               "--engine", "cpu", "--json", *options]
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
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "..", "target"))
    parser.add_argument("--stereod", default=os.path.join(target, "release", "stereod"),
                        help="the program (default: target/release/stereod)")
    parser.add_argument("--size", type=parse_size, action="append", metavar="WxH:D",
                        help=f"may be repeated (default: {' '.join(DEFAULT_SIZES)})")
    parser.add_argument("--threads", type=int, metavar="N",
                        help="threads of all three (default: what each takes)")
    parser.add_argument("--simd", choices=["auto", "avx512", "avx2", "neon", "portable"],
                        default="auto", help="vector instructions of stereod")
    parser.add_argument("--default", action="store_true",
                        help="stereod's default cost and paths, not `ad` along 8")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--repeats", type=int, default=3, help="OpenCV's runs a turn (default: 3)")
    parser.add_argument("--require", type=float, metavar="RATIO",
                        help="exit with 1 if stereod's best is not this many times MODE_HH's")
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

    options = ["--set", f"engine.simd={arguments.simd}"] + ([] if arguments.default else AD)
    if arguments.threads is not None:
        cv2.setNumThreads(arguments.threads)
        options += ["--threads", str(arguments.threads)]
    modes = {"hh": cv2.STEREO_SGBM_MODE_HH, "3way": cv2.STEREO_SGBM_MODE_SGBM_3WAY}
    rows = []
    for width, height, disparities in arguments.size or map(parse_size, DEFAULT_SIZES):
        if disparities % 16:
            sys.exit(f"OpenCV needs a multiple of 16 disparities, not {disparities}")
        left, right = random_pair(numpy, width, height)
        opencv = {mode: [] for mode in modes}
        medians, bests = [], []
        matchers = {mode: cv2.StereoSGBM_create(minDisparity=0, numDisparities=disparities,
                                                blockSize=5, P1=200, P2=800, disp12MaxDiff=1,
                                                mode=number)
                    for mode, number in modes.items()}
        for matcher in matchers.values():
            matcher.compute(left, right)  # Memory is allocated in the first run.
        for _ in range(arguments.rounds):
            for mode, matcher in matchers.items():
                opencv[mode] += time_opencv(matcher, left, right, arguments.repeats)
            median, best = time_stereod(arguments.stereod, width, height, disparities, options)
            medians.append(median)
            bests.append(best)
        row = {"size": f"{width}x{height}", "disparities": disparities,
               "stereod_median_ms": statistics.median(medians), "stereod_best_ms": min(bests)}
        for mode, times in opencv.items():
            row[f"{mode}_median_ms"] = statistics.median(times)
            row[f"{mode}_best_ms"] = min(times)
            row[f"{mode}_ratio_median"] = row[f"{mode}_median_ms"] / row["stereod_median_ms"]
            row[f"{mode}_ratio_best"] = row[f"{mode}_best_ms"] / row["stereod_best_ms"]
        rows.append(row)

    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"OpenCV {cv2.__version__}, {cv2.getNumThreads()} threads; "
              "milliseconds, best (median)")
        print("| size | D | MODE_HH | MODE_SGBM_3WAY | stereod | times as fast as HH | as 3WAY |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for r in rows:
            times = [f"{r[f'{who}_best_ms']:.1f} ({r[f'{who}_median_ms']:.1f})"
                     for who in ["hh", "3way", "stereod"]]
            ratios = [f"{r[f'{who}_ratio_best']:.1f} ({r[f'{who}_ratio_median']:.1f})"
                      for who in ["hh", "3way"]]
            print(f"| {r['size']} | {r['disparities']} | {' | '.join(times + ratios)} |")
    if arguments.require is not None:
        slow = [r for r in rows if r["hh_ratio_best"] < arguments.require]
        for r in slow:
            print(f"{r['size']}: {r['hh_ratio_best']:.1f} times as fast; "
                  f"{arguments.require:g} were required", file=sys.stderr)
        sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
