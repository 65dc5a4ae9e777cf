#!/usr/bin/env python3
"""Prints the table "Even surfaces" of docs/accuracy.md.

A box with texture and a disparity of 32 px stands in front of an even ground (640x480). A figure is the share of the
ground, farther than 12 px from the box, that takes the disparity of the box, without / with the filter `evidence`.
Needs NumPy, OpenCV and, for H.264, ffmpeg.

    scripts/even_surfaces.py target/release/stereod
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import cv2
import numpy as np

WIDTH, HEIGHT, DISPARITY, RIM = 640, 480, 32, 12
LEFT, TOP, RIGHT, BOTTOM = 240, 160, 400, 320  # of the box in the left view
GROUNDS = {"black": 0, "grey of 128": 128, "white": 255}


def h264(view, factor):
    """Returns a view after H.264 with this constant rate factor."""
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{HEIGHT}"]
    code = ["-c:v", "libx264", "-crf", str(factor), "-pix_fmt", "yuv420p", "-f", "h264", "-"]
    quiet = ["ffmpeg", "-loglevel", "error"]
    coded = subprocess.run([*quiet, *raw, "-i", "-", *code], input=view.tobytes(), capture_output=True, check=True)
    back = [*quiet, "-f", "h264", "-i", "-", *raw, "-"]
    pixels = subprocess.run(back, input=coded.stdout, capture_output=True, check=True).stdout
    return np.frombuffer(pixels, np.uint8).reshape(HEIGHT, WIDTH)


def jpeg(view, quality):
    """Returns a view after JPEG with this quality."""
    coded = cv2.imencode(".jpg", view, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE)


# Noise in grey levels, and the codec with its quality.
COLUMNS = {
    "as it is": (0, None),
    "noise 0.5": (0.5, None),
    "1.2": (1.2, None),
    "3": (3, None),
    "5": (5, None),
    "10": (10, None),
    "JPEG": (1.2, (jpeg, 80)),
    "H.264, 26": (1.2, (h264, 26)),
    "H.264, 18": (1.2, (h264, 18)),
}


def write_pair(folder, ground, sigma, codec):
    """Writes the pair, its truth, the mask of the ground, and the item.json that describes them."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    texture = random.integers(40, 200, ((BOTTOM - TOP + 2) // 3, (RIGHT - LEFT + 2) // 3))
    texture = np.kron(texture, np.ones((3, 3)))[: BOTTOM - TOP, : RIGHT - LEFT]
    for name, shift in [("left", 0), ("right", DISPARITY)]:
        view = np.full((HEIGHT, WIDTH), float(ground))
        view[TOP:BOTTOM, LEFT - shift : RIGHT - shift] = texture
        view = np.clip(np.rint(view + random.normal(0, sigma, view.shape)), 0, 255).astype(np.uint8)
        if codec:
            view = codec[0](view, codec[1])
        cv2.imwrite(str(folder / f"{name}.png"), view)
    # All that counts is that the ground is farther away than the box.
    cv2.imwrite(str(folder / "truth.png"), np.ones((HEIGHT, WIDTH), np.uint8))
    mask = np.full((HEIGHT, WIDTH), 255, np.uint8)
    mask[TOP - RIM : BOTTOM + RIM, LEFT - RIM : RIGHT + RIM] = 0
    cv2.imwrite(str(folder / "ground.png"), mask)
    item = {"left": "left.png", "right": "right.png", "gt": "truth.png", "gt_scale": 1, "ndisp": 64}
    (folder / "item.json").write_text(json.dumps({**item, "masks": {"all": "ground.png"}}))


def phantoms(program, folders, evidence):
    """Returns the percentage of the ground that is nearer than it should be, a number for each folder."""
    command = [program, "evaluate", *folders, "--evidence", evidence, "--repeat", "1", "--json", "-"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    figures = [dataset["items"][0]["unfilled"]["all"] for dataset in report["datasets"]]
    return [all_["density"] * (all_["nearer_valid"] or 0) / 100 for all_ in figures]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program stereod")
    program = parser.parse_args().program
    print("| ground |", " | ".join(COLUMNS), "|\n| --- |" + " ---: |" * len(COLUMNS))
    for name, grey in GROUNDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            folders = [pathlib.Path(scratch, str(number)) for number in range(len(COLUMNS))]
            for folder, (sigma, codec) in zip(folders, COLUMNS.values(), strict=True):
                write_pair(folder, grey, sigma, codec)
            shares = zip(phantoms(program, folders, "off"), phantoms(program, folders, "on"), strict=True)
            print(f"| {name} |", " | ".join(f"{off:.1f} / {on:.1f}" for off, on in shares), "|")


if __name__ == "__main__":
    main()
