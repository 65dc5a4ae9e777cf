#!/usr/bin/env python3
"""Measures the temporal stages (docs/accuracy.md, "Temporal denoising") with the program itself: the error of
shifts, the flicker of a static scene in noise and of a video, the loss by noise in the demo scene and in clips of
moving rigs, and the movers found in a star field.

Needs numpy, OpenCV (cv2) and gst-launch-1.0. Prints tables in Markdown."""

import argparse
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np


def run(stereod, *arguments):
    """Runs the program and returns its statistics."""
    command = [stereod, "run", "--headless", *map(str, arguments), "--stats", "-", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")
    return json.loads(done.stdout)


def numbers(path, size):
    """Returns the frames of a 16-bit recording."""
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
    """Shifts an image by fractions of pixels, through its spectrum."""
    height, width = picture.shape
    x, y = np.fft.fftfreq(width)[None], np.fft.fftfreq(height)[:, None]
    return np.fft.ifft2(np.fft.fft2(picture) * np.exp(2j * np.pi * (x * by[0] + y * by[1]))).real


def shifts(stereod, pictures, sigmas):
    """Prints the errors of known shifts."""
    print("\n| | " + " | ".join(f"noise {sigma}" for sigma in sigmas) + " |")
    print("| --- " * (len(sigmas) + 1) + "|")
    random = np.random.default_rng(1)
    for path in pictures:
        fine = cv2.imread(path, cv2.IMREAD_GRAYSCALE).astype(float)[:720, :1024]
        cells = []
        for sigma in sigmas:
            errors = []
            for _ in range(8):
                by = random.uniform(-0.9, 0.9, 2)
                with tempfile.TemporaryDirectory() as folder:
                    for number, at in enumerate([(0, 0), by]):
                        # Without the rim, where a spectrum wraps around.
                        seen = shifted(fine, at)[16:-16, 16:-16]
                        for eye in ["left", "right"]:
                            write(folder, eye, number, seen + random.normal(0, sigma, seen.shape))
                    stats = run(stereod, *sources(folder), "-d", 16, "--temporal", "whiten")
                found = stats["temporal"]["newest_shift_px"]
                # The newest image at x corresponds to the one before at x - shift.
                errors += [np.inf] if found is None else list(np.array(found) - -np.array(by))
            errors = np.array(errors)
            cells.append(f"{np.sqrt((errors**2).mean()):.3f} (at most {np.abs(errors).max():.3f})")
        print(f"| {pathlib.Path(path).parent.name or path} | " + " | ".join(cells) + " |", flush=True)


def known_and_flicker(maps):
    """Returns the known, changing and blinking shares of maps in 1/256 px, in a row of a table."""
    known = maps > 0
    changes = known[1:] & known[:-1] & (np.abs(np.diff(maps.astype(int), axis=0)) > 256)
    blinks = known[1:] != known[:-1]
    return " | ".join(f"{100 * share.mean():.2f} %" for share in (known, changes, blinks))


def flicker(stereod, left, right, sigmas, modes):
    """Prints density and flicker of a static scene in fresh noise."""
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
                maps = numbers(video, (width, height))[24:]
                print(f"| {sigma} | {mode or 'off'} | {known_and_flicker(maps)} |")


def seconds(stereod, left, right, modes):
    """Prints density and flicker of the 30 frames of a video with the least and with the most motion."""
    pictures = np.array(pictures_of(left))
    motion = (cv2.absdiff(pictures[1:], pictures[:-1]) > 12).mean(axis=(1, 2))
    # The filters remember nothing in the first second.
    moved = {start: motion[start : start + 29].mean() for start in range(30, len(pictures) - 29, 30)}
    print("\n| first frame | pixels that change | | known | changes by more than 1 px | blinks |")
    print("| --- " * 6 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for mode in modes:
            video = f"{folder}/map.mkv"
            run(stereod, "--left", left, "--right", right, "-d", 64, *mode.split(), "--record", video)
            maps = numbers(video, pictures.shape[:0:-1])
            for start in [min(moved, key=moved.get), max(moved, key=moved.get)]:
                row = known_and_flicker(maps[start : start + 30])
                print(f"| {start} | {100 * moved[start]:.1f} % | {mode or 'off'} | {row} |", flush=True)


def demo(stereod, sigmas, modes):
    """Prints the bad pixels of the demo scene, in which the rig and a ball move."""
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


def pictures_of(pattern, flags=cv2.IMREAD_GRAYSCALE):
    """Returns the images of a pattern, or of a video."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        sys.exit(f"{pattern}: no such file")
    if len(paths) != 1:
        return [cv2.imread(path, flags) for path in paths]
    video, pictures = cv2.VideoCapture(paths[0]), []
    while (read := video.read())[0]:
        pictures.append(cv2.cvtColor(read[1], cv2.COLOR_BGR2GRAY))
    return pictures


def clip(stereod, patterns, truth, visible, disparities, sigmas, modes):
    """Prints the gain in a clip of a moving rig, relative to its truth or else to its map without noise."""
    eyes = {eye: pictures_of(pattern) for eye, pattern in zip(["left", "right"], patterns)}
    height, width = eyes["left"][0].shape
    first = 3  # Fewer images are not enough for a prediction.
    with tempfile.TemporaryDirectory() as folder:

        def maps_of(*arguments):
            video = f"{folder}/map.mkv"
            stats = run(stereod, *sources(folder), "-d", disparities, *arguments, "--record", video)
            return numbers(video, (width, height))[first:].astype(int), stats.get("temporal")

        def registered(account):
            return f"{account['registered']} of {account['pairs']}, {account['shift_px']} px" if account else ""

        for eye, pictures in eyes.items():
            for number, picture in enumerate(pictures):
                write(folder, eye, number, picture)
        mask = f"{folder}/mask.mkv"
        clean, account = maps_of("--temporal", "whiten", "--history", 2, "--whitened", mask)
        moving = numbers(mask, (width, height))[first:] & 1 == 1
        right = clean
        if truth:
            right = np.array(pictures_of(truth, cv2.IMREAD_UNCHANGED)[first:]).astype(int)
        if visible:
            right = np.where(np.array(pictures_of(visible)[first:]) == 255, right, 0)
        print(f"\n{len(right)} maps; without noise {100 * moving.mean():.1f} % of the pixels move.\n")
        print("| noise | | registered | known | bad 1 | of what is still | of what moves | changes | blinks |")
        print("| --- " * 9 + "|")
        print(f"| 0 | --temporal whiten --history 2 | {registered(account)} | | | | | | |")
        for sigma in sigmas:
            random = np.random.default_rng(4)
            for eye, pictures in eyes.items():
                for number, picture in enumerate(pictures):
                    write(folder, eye, number, picture + random.normal(0, sigma, picture.shape))
            for mode in modes:
                maps, account = maps_of(*mode.split())
                known, judged = maps > 0, right > 0
                bad = ~known | (np.abs(maps - right) > 256)
                both = known[1:] & known[:-1]
                changes = both & (np.abs(np.diff(maps, axis=0)) > 256)
                parts = [judged, judged & ~moving, judged & moving]
                shares = [known.mean(), *(bad[part].mean() for part in parts)]
                shares += [changes.mean(), (known[1:] != known[:-1]).mean()]
                row = " | ".join(f"{100 * share:.2f} %" for share in shares)
                print(f"| {sigma} | {mode or 'off'} | {registered(account)} | {row} |", flush=True)


def stars(stereod, peaks, blobs):
    """Prints how often the mask contains the movers of a star field, and its other regions."""
    width = height = 512
    sigma, frames = 5.0, 60
    print("\n| size of the mover (sigma) | " + " | ".join(f"{peak:g} of the noise" for peak in peaks) + " |")
    print("| --- " * (len(peaks) + 1) + "|")
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)

    def blob(at, size):
        return np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * size * size))

    alarms, at_stars = [], []
    for size in blobs:
        cells = []
        for peak in peaks:
            random = np.random.default_rng(3)
            places = random.uniform(10, 502, (200, 2))
            bright = random.uniform(20, 200, 200)
            with tempfile.TemporaryDirectory() as folder:
                track, jitter = [], []
                for number in range(frames):
                    by = random.uniform(-0.5, 0.5, 2)
                    jitter.append(by)
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
                other = centres[1:][away >= 3 + 2 * size]
                others.append(len(other))
                from_stars = np.hypot(*(other[:, None] - (places + jitter[number])).transpose(2, 0, 1))
                at_stars.append((from_stars.min(axis=1) < 5).sum() if len(other) else 0)
            cells.append(f"{100 * found / (frames - 25):.0f} %")
            alarms.append(np.mean(others))
        print(f"| {size:g} px | " + " | ".join(cells) + " |")
    print(f"\nOther regions in the mask: {np.mean(alarms):.2f} a picture, {np.mean(at_stars):.2f} of them on stars.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    parser.add_argument("--stereod", default=f"{target}/release/stereod", help="the program")
    parser.add_argument("--shifts", nargs="+", metavar="PICTURE", help="pictures that are shifted")
    parser.add_argument("--flicker", nargs=2, metavar=("LEFT", "RIGHT"), help="a rectified pair that stands still")
    parser.add_argument("--seconds", nargs=2, metavar=("LEFT", "RIGHT"), help="rectified videos of a rig that stands still")
    parser.add_argument("--demo", action="store_true", help="the demo scene")
    parser.add_argument("--clip", nargs=2, metavar=("LEFT", "RIGHT"), help="patterns such as 'clip/*/left.png', or videos")
    parser.add_argument("--truth", metavar="PATTERN", help="the clip's: 16-bit PNG, disparity * 256, 0 = unknown")
    parser.add_argument("--visible", metavar="PATTERN", help="where its truth counts: 255")
    parser.add_argument("--disparities", type=int, default=64, help="of the clip")
    parser.add_argument("--stars", action="store_true", help="a star field")
    options = parser.parse_args()
    modes = ["", "--steady 8", "--temporal denoise", "--temporal denoise --steady 8"]
    if options.shifts:
        shifts(options.stereod, options.shifts, [0, 5, 10])
    if options.flicker:
        flicker(options.stereod, *options.flicker, [5, 10, 20], modes)
    if options.seconds:
        seconds(options.stereod, *options.seconds, modes)
    if options.demo:
        demo(options.stereod, [5, 10], ["", "--temporal denoise", "--temporal denoise --steady 4"])
    if options.clip:
        moving_modes = ["", "--temporal denoise", "--temporal denoise --steady 4"]
        about = options.clip, options.truth, options.visible, options.disparities
        clip(options.stereod, *about, [0, 5, 10, 20], moving_modes)
    if options.stars:
        stars(options.stereod, [0, 0.33, 0.67, 1, 1.5, 2, 3], [1, 2, 3])


if __name__ == "__main__":
    main()
