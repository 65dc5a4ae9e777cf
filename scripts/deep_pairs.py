#!/usr/bin/env python3
"""Makes pairs of known disparity with 10 to 16 bits a sample from 8-bit ones, and reduces them to 8 bits.

Pictures in colour have more than 8 bits once they are grey, and means of 2x2 pixels (--half) have two more. Linear
light is (grey / 255) ^ 2.2. The sensor holds 12,000 electrons, has 3 electrons of read noise, shot noise, and a black
level of 1/64 of its range. Folders with an item.json become OUT/SET/ITEM, which `stereod evaluate` reads:

    8-bit           the 8-bit original
    bytes           its bytes times 257
    deep            the same picture at 16 bits
    linear          a sensor of 12 bits in the upper end of 16
    linear-8, -16   the same with an eighth, a sixteenth of the light
    low             a sensor of 10 bits in the lower end of 16

and beside each of them SET.square-root, SET.normalised (difference from the mean over 33x33 pixels in standard
deviations, times 40) and SET.clahe (OpenCV's, of 4 and 8x8), reduced to 8 bits in these ways.

    scripts/deep_pairs.py OUT DATA/middlebury_v2/* DATA/more/middlebury_2005_2006_third/* \\
        --half DATA/more/middlebury_2005_2006_half/* DATA/middlebury_2006/*
    stereod evaluate OUT/*
    stereod evaluate OUT/* --tone upper-bits
"""

import argparse
import json
import pathlib

import cv2
import numpy as np

ELECTRONS, READ_NOISE = 12000, 3


def grey(path, half):
    """Intensity by Rec. 709, of 2x2 pixels each where `half`."""
    blue, green, red = np.moveaxis(cv2.imread(str(path), cv2.IMREAD_COLOR).astype(float), 2, 0)
    picture = 0.2125 * red + 0.7154 * green + 0.0721 * blue
    if half:
        height, width = (side // 2 for side in picture.shape)
        picture = picture[: 2 * height, : 2 * width].reshape(height, 2, width, 2).mean((1, 3))
    return picture


def sensor(picture, light, bits, random):
    """Simulates a linear sensor with this number of bits."""
    electrons = random.poisson((picture / 255) ** 2.2 * light * ELECTRONS) + random.normal(0, READ_NOISE, picture.shape)
    top = 2**bits - 1
    return np.clip(np.rint((electrons / ELECTRONS * 63 + 1) / 64 * top), 0, top).astype(np.uint16)


SETS = {
    "8-bit": lambda picture, random: np.rint(picture).astype(np.uint8),
    "bytes": lambda picture, random: np.rint(picture).astype(np.uint16) * 257,
    "deep": lambda picture, random: np.rint(picture * 257).astype(np.uint16),
    "linear": lambda picture, random: sensor(picture, 1, 12, random) << 4,
    "linear-8": lambda picture, random: sensor(picture, 1 / 8, 12, random) << 4,
    "linear-16": lambda picture, random: sensor(picture, 1 / 16, 12, random) << 4,
    "low": lambda picture, random: sensor(picture, 1, 10, random),
}


def normalised(picture):
    values = picture.astype(float)
    mean, square = (cv2.boxFilter(v, -1, (33, 33), borderType=cv2.BORDER_REPLICATE) for v in (values, values**2))
    deviation = np.sqrt(np.maximum(square - mean**2, 0)) + 0.5
    return np.clip(np.rint(128 + 40 * (values - mean) / deviation), 0, 255).astype(np.uint8)


REDUCED = {
    "square-root": lambda picture: np.rint(255 * np.sqrt(picture / 65535)).astype(np.uint8),
    "normalised": normalised,
    "clahe": lambda picture: np.rint(cv2.createCLAHE(4, (8, 8)).apply(picture) / 257).astype(np.uint8),
}


def make(item, out, half):
    described = json.loads((item / "item.json").read_text())
    step = 2 if half else 1
    eyes = [grey(item / described[eye], half) for eye in ("left", "right")]
    height, width = eyes[0].shape

    def at_its_size(name):
        return cv2.imread(str(item / name), cv2.IMREAD_GRAYSCALE)[: step * height : step, : step * width : step]

    masks = {name: at_its_size(file) for name, file in described.get("masks", {}).items() if name in ("nonocc", "all")}
    description = {
        "name": item.name, "left": "left.png", "right": "right.png", "gt": "gt.png", "metric": described["metric"],
        "gt_scale": described["gt_scale"] * step, "gt_invalid": described["gt_invalid"],
        "ndisp": -(-described["ndisp"] // step), "masks": {name: f"{name}.png" for name in masks},
    }  # fmt: skip
    for number, (name, of) in enumerate(SETS.items()):
        random = np.random.default_rng([number, *item.name.encode()])
        pair = [of(eye, random) for eye in eyes]
        ways = {"": pair}
        if pair[0].dtype == np.uint16:
            ways |= {f".{way}": [reduce(eye) for eye in pair] for way, reduce in REDUCED.items()}
        for suffix, (left, right) in ways.items():
            folder = out / f"{name}{suffix}" / item.name
            folder.mkdir(parents=True, exist_ok=True)
            pictures = {"left": left, "right": right, "gt": at_its_size(described["gt"]), **masks}
            for file, picture in pictures.items():
                cv2.imwrite(str(folder / f"{file}.png"), picture)
            (folder / "item.json").write_text(json.dumps(description))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder for the sets")
    parser.add_argument("items", type=pathlib.Path, nargs="*", help="folders with an item.json")
    parser.add_argument("--half", type=pathlib.Path, nargs="*", default=[], help="those to be made of half the size")
    options = parser.parse_args()
    for half, items in ((False, options.items), (True, options.half)):
        for item in items:
            if (item / "item.json").is_file():
                make(item, options.out, half)


if __name__ == "__main__":
    main()
