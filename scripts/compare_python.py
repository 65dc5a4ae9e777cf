#!/usr/bin/env python3
"""Compares the Python package with cv2.StereoSGBM: time, known pixels and errors of each pair.

A pair is a folder with an item.json or a pair.json that names its images, its search range and its
true disparity. Errors are counted where both cameras see the point, if the pair has such a mask.
Needs opencv-python-headless, numpy and the stereod package.

    scripts/compare_python.py DATA/middlebury_v2/teddy DATA/middlebury_v2/cones --threads 2
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

try:
    import cv2
    import numpy

    import stereod
except ImportError as error:
    sys.exit(f"{error}; `python3 -m pip install opencv-python-headless numpy` and scripts/wheel.sh")

BLOCK = 5


def read_pair(folder):
    """The images, the search range, the true disparity (NaN: unknown) and the mask of judged pixels."""
    for name in ["item.json", "pair.json"]:
        if (folder / name).exists():
            pair = json.loads((folder / name).read_text())
            break
    else:
        sys.exit(f"{folder} has neither item.json nor pair.json")
    images = [cv2.imread(str(folder / pair[view])) for view in ["left", "right"]]
    truth = cv2.imread(str(folder / pair["gt"]), cv2.IMREAD_UNCHANGED).astype(float)
    if truth.ndim == 3:
        truth = truth[..., 0]
    truth[~numpy.isfinite(truth) | (truth == pair.get("gt_invalid", 0))] = numpy.nan
    truth /= pair.get("gt_scale", 1)
    judged = ~numpy.isnan(truth)
    mask = pair.get("masks", {}).get("nonocc")
    if mask:
        judged &= cv2.imread(str(folder / mask), cv2.IMREAD_GRAYSCALE) == 255
    return images, pair["ndisp"], truth, judged


def measure(compute, images, repeats):
    """The disparity in pixels (NaN: unknown) and the median time of a pair in milliseconds."""
    compute(*images)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        raw = compute(*images)
        times.append(1000 * (time.perf_counter() - begin))
    return numpy.where(raw < 0, numpy.nan, raw / 16), statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0, help="of both on the CPU (default: all)")
    parser.add_argument("--engine", default="cpu", help="of stereod: cpu, cuda (default: cpu)")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIR", help="a folder")
    arguments = parser.parse_args()
    if arguments.threads:
        cv2.setNumThreads(arguments.threads)

    print(f"OpenCV {cv2.__version__}, stereod {stereod.__version__}")
    print(f"{'pair':20} {'matcher':24} {'ms':>7} {'known %':>8} {'wrong % of known':>17}")
    for folder in arguments.pairs:
        images, disparities, truth, judged = read_pair(folder)
        images = [cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) for image in images]
        opencv = dict(numDisparities=-(-disparities // 16) * 16, blockSize=BLOCK,
                      P1=8 * BLOCK * BLOCK, P2=32 * BLOCK * BLOCK, disp12MaxDiff=1,
                      preFilterCap=63, uniquenessRatio=10, speckleWindowSize=100, speckleRange=2)
        own = dict(engine=arguments.engine, threads=arguments.threads)
        same_work = stereod.Matcher(disparities=disparities, confidence=False, cost="ad", ad_window=1,
                                    paths=8, cost_window=0, prior=0, evidence="off", spatial="off",
                                    **own)
        defaults = stereod.Matcher(disparities=disparities, confidence=False, **own)
        matchers = {
            "cv2.StereoSGBM, MODE_HH":
                cv2.StereoSGBM_create(**opencv, mode=cv2.STEREO_SGBM_MODE_HH).compute,
            "cv2.StereoSGBM, 3WAY":
                cv2.StereoSGBM_create(**opencv, mode=cv2.STEREO_SGBM_MODE_SGBM_3WAY).compute,
            "StereoSGBM_create, same":
                stereod.StereoSGBM_create(**opencv, mode=stereod.STEREO_SGBM_MODE_HH, **own).compute,
            "Matcher, ad, 8 paths": lambda *pair, of=same_work: of(*pair).raw,
            "Matcher, defaults": lambda *pair, of=defaults: of(*pair).raw,
        }
        for name, compute in matchers.items():
            disparity, milliseconds = measure(compute, images, arguments.repeats)
            known = judged & ~numpy.isnan(disparity)
            wrong = abs(disparity - truth)[known] > 1
            print(f"{folder.name:20} {name:24} {milliseconds:7.1f} "
                  f"{100 * known.sum() / judged.sum():8.1f} {100 * wrong.mean():17.1f}")


if __name__ == "__main__":
    main()
