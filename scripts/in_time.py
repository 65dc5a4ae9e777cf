#!/usr/bin/env python3
"""Measures the stages in time (docs/accuracy.md, "In time") with the program itself: how exact shifts are, how steady
a still scene's map is in noise, what noise costs the demo scene, and which movers are found in a star field.

Needs numpy, OpenCV (cv2) and gst-launch-1.0. Prints tables in Markdown."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np


def run(stereod, *arguments):
    """Runs the program; its statistics."""
    command = [stereod, "run", "--headless", *map(str, arguments), "--stats", "-", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")
    return json.loads(done.stdout)


def numbers(path, size):
    """The frames of a recording of 16 bits."""
    pipeline = f"filesrc location={path} ! matroskademux ! avdec_ffv1 ! video/x-raw,format=GRAY16_LE ! fdsink fd=1"
    raw = subprocess.run(["gst-launch-1.0", "-q", *pipeline.split()], capture_output=True, check=True).stdout
    return np.frombuffer(raw, "<u2").reshape(-1, size[1], size[0])


def write(folder, eye, number, picture):
    folder = pathlib.Path(folder) / eye
    folder.mkdir(parents=True, exist_ok=True)
    grey = np.clip(np.round(picture), 0, 255).astype(np.uint8)
    cv2.imwrite(str(folder / f"{number:06d}.png"), grey, [cv2.IMWRITE_PNG_COMPRESSION, 1])


def sources(folder):
    return ["--left", f"{folder}/left/%06d.png", "--right", f"{folder}/right/%06d.png"]


def shifted(picture, by):
    """The picture as it is seen `by` pixels to the right and down, between its pixels by its spectrum."""
    height, width = picture.shape
    x, y = np.fft.fftfreq(width)[None], np.fft.fftfreq(height)[:, None]
    return np.fft.ifft2(np.fft.fft2(picture) * np.exp(2j * np.pi * (x * by[0] + y * by[1]))).real


def shifts(stereod, pictures, sigmas):
    """The errors of shifts that are known."""
    print("\n| noise | " + " | ".join(pathlib.Path(p).parent.name or p for p in pictures) + " |")
    print("| --- " * (len(pictures) + 1) + "|")
    random = np.random.default_rng(1)
    for sigma in sigmas:
        cells = []
        for path in pictures:
            fine = cv2.imread(path, cv2.IMREAD_GRAYSCALE).astype(float)[:720, :1024]
            errors = []
            for _ in range(8):
                by = random.uniform(-0.9, 0.9, 2)
                with tempfile.TemporaryDirectory() as folder:
                    for number, at in enumerate([(0, 0), by]):
                        # The rim is left out: there a spectrum wraps around.
                        seen = shifted(fine, at)[16:-16, 16:-16]
                        for eye in ["left", "right"]:
                            write(folder, eye, number, seen + random.normal(0, sigma, seen.shape))
                    stats = run(stereod, *sources(folder), "-d", 16, "--temporal", "whiten")
                found = stats["temporal"]["newest_shift_px"]
                # What the newest shows at x, the one before shows at x - shift.
                errors += [np.inf] if found is None else list(np.array(found) - -np.array(by))
            errors = np.array(errors)
            cells.append(f"{np.sqrt((errors**2).mean()):.3f} (at most {np.abs(errors).max():.3f})")
        print(f"| {sigma} | " + " | ".join(cells) + " |")


def flicker(stereod, left, right, sigmas, modes):
    """What is known of a still scene in fresh noise, and what changes from map to map."""
    eyes = {"left": left, "right": right}
    pictures = {eye: cv2.imread(path, cv2.IMREAD_GRAYSCALE).astype(float) for eye, path in eyes.items()}
    height, width = pictures["left"].shape
    random = np.random.default_rng(2)
    print("\n| noise | | known | changes by more than 1 px | blinks |\n| --- | --- | --- | --- | --- |")
    for sigma in sigmas:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(50):
                for eye, picture in pictures.items():
                    write(folder, eye, number, picture + random.normal(0, sigma, picture.shape))
            for mode in modes:
                video = f"{folder}/map.mkv"
                run(stereod, *sources(folder), "-d", 64, *mode.split(), "--record", video)
                maps = numbers(video, (width, height))[24:].astype(int)
                known = maps > 0
                both = known[1:] & known[:-1]
                changes = both & (np.abs(np.diff(maps, axis=0)) > 256)
                blinks = known[1:] != known[:-1]
                shares = [100 * share.mean() for share in (known, changes, blinks)]
                print(f"| {sigma} | {mode or 'off'} | " + " | ".join(f"{s:.2f} %" for s in shares) + " |")


def demo(stereod, sigmas, modes):
    """Bad pixels of the demo scene, in which the rig and a ball move."""
    size, frames = (640, 480), 60
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--demo", "--frames", frames, "-d", 64]
        clean, mask = f"{folder}/clean.mkv", f"{folder}/mask.mkv"
        still = ["--set", "demo.noise=0", "--temporal", "whiten", "--history", 2]
        run(stereod, *arguments, *still, "--record", clean, "--whitened", mask)
        truth = numbers(clean, size).astype(int)
        moving = numbers(mask, size) & 1 == 1
        print("\n| noise | | bad 1 of what both eyes see | of the whole map beside that without noise | of what moves |")
        print("| --- | --- | --- | --- | --- |")
        for sigma in sigmas:
            for mode in modes:
                video = f"{folder}/map.mkv"
                stats = run(stereod, *arguments, "--set", f"demo.noise={sigma}", *mode.split(), "--record", video)
                maps = numbers(video, size).astype(int)
                bad = (truth > 0) & ((maps == 0) | (np.abs(maps - truth) > 256))
                of_moving = bad[moving & (truth > 0)].mean()
                of_all = bad[truth > 0].mean()
                shares = [stats["accuracy"]["bad_1"], 100 * of_all, 100 * of_moving]
                print(f"| {sigma} | {mode or 'off'} | " + " | ".join(f"{s:.2f} %" for s in shares) + " |")


def stars(stereod, peaks, blobs):
    """Movers of a star field: how often the mask has them, and what else it has."""
    width = height = 512
    sigma, frames = 5.0, 60
    print("\n| size of the mover (sigma) | " + " | ".join(f"{peak:g} of the noise" for peak in peaks) + " |")
    print("| --- " * (len(peaks) + 1) + "|")
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)

    def blob(at, size):
        return np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * size * size))

    alarms = []
    for size in blobs:
        cells = []
        for peak in peaks:
            random = np.random.default_rng(3)
            places = random.uniform(10, 502, (200, 2))
            bright = random.uniform(20, 200, 200)
            with tempfile.TemporaryDirectory() as folder:
                track = []
                for number in range(frames):
                    by = random.uniform(-0.5, 0.5, 2)
                    sky = np.full((height, width), 30.0, np.float32)
                    for place, light in zip(places, bright):
                        left, top = (np.round(place).astype(int) - 6).clip(0)
                        part = np.s_[top : top + 13, left : left + 13]
                        at = place + by
                        sky[part] += light * np.exp(-((x[part] - at[0]) ** 2 + (y[part] - at[1]) ** 2) / 2)
                    at = np.array([60.0 + 2 * number, 250.0 + number]) + by
                    track.append(at)
                    sky += peak * sigma * blob(at, size)
                    for eye in ["left", "right"]:
                        write(folder, eye, number, sky + random.normal(0, sigma, sky.shape))
                video = f"{folder}/white.mkv"
                run(stereod, *sources(folder), "-d", 16, "--temporal", "whiten", "--whitened", video)
                masks = (numbers(video, (width, height)) & 1).astype(np.uint8)
            found, others = 0, []
            for number in range(25, frames):
                count, _, _, centres = cv2.connectedComponentsWithStats(masks[number])
                away = np.hypot(*(centres[1:] - track[number]).T)
                found += bool((away < 3 + 2 * size).any())
                others.append(count - 1 - (away < 3 + 2 * size).sum())
            cells.append(f"{100 * found / (frames - 25):.0f} %")
            alarms.append(np.mean(others))
        print(f"| {size:g} px | " + " | ".join(cells) + " |")
    print(f"\nOther regions in the mask: {np.mean(alarms):.2f} a picture.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stereod", default="target/release/stereod", help="the program")
    parser.add_argument("--shifts", nargs="+", metavar="PICTURE", help="pictures that are shifted")
    parser.add_argument("--flicker", nargs=2, metavar=("LEFT", "RIGHT"), help="a rectified pair that stands still")
    parser.add_argument("--demo", action="store_true", help="the demo scene")
    parser.add_argument("--stars", action="store_true", help="a star field")
    options = parser.parse_args()
    modes = ["", "--steady 8", "--temporal denoise", "--temporal denoise --steady 8"]
    if options.shifts:
        shifts(options.stereod, options.shifts, [0, 5, 10])
    if options.flicker:
        flicker(options.stereod, *options.flicker, [5, 10, 20], modes)
    if options.demo:
        demo(options.stereod, [5, 10], ["", "--temporal denoise", "--temporal denoise --steady 4"])
    if options.stars:
        stars(options.stereod, [0.33, 0.67, 1, 1.5, 2, 3], [1, 2, 3])


if __name__ == "__main__":
    main()
