"""Draws pictures of the documents from a stereo pair of Middlebury 2014: the live page in docs/images/page.jpg, and the
window, whose points turn, in docs/images/turning.webp. Needs Xvfb, xdotool and ImageMagick.

    STEREOD_TEST_PROGRAM=target/release/stereod target/browser-tools/bin/python tests/browser/picture.py \
        LEFT RIGHT FOCAL_PX BASELINE_M DOFFS
"""

import io
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from conftest import CHROMIUM, FLAGS, PROGRAM
from PIL import Image
from playwright.sync_api import sync_playwright

LEFT, RIGHT, FOCAL, BASELINE, DOFFS = sys.argv[1:]
IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
# The piano stool, as shares of width and height of the canvas.
PROBE = 0.2, 0.63
WINDOW = 1280, 560
# Pictures of one turn to both sides, and how far the mouse goes to each, in pixels.
TURNS, TURN = 48, 140


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Two pairs a second, which any machine matches.
        for view, picture in [("left", LEFT), ("right", RIGHT)]:
            video = f"filesrc location={Path(picture).resolve()} ! pngdec ! imagefreeze num-buffers=200 ! video/x-raw,framerate=2/1 ! videoconvert"
            subprocess.run(["gst-launch-1.0", "-q", *f"{video} ! avenc_ffv1 ! matroskamux ! filesink location={view}.mkv".split()],
                           cwd=folder, check=True)
        width, height = Image.open(LEFT).size
        centre = [(width - 1) / 2, (width - 1) / 2 + float(DOFFS)]
        cameras = [f"[{FOCAL} 0 {x}; 0 {FOCAL} {(height - 1) / 2}; 0 0 1]" for x in centre]
        (folder / "calib.txt").write_text(
            f"cam0={cameras[0]}\ncam1={cameras[1]}\ndoffs={DOFFS}\nbaseline={1000 * float(BASELINE)}\n"
            f"width={width}\nheight={height}\nndisp=64\n")
        command = [PROGRAM, "run", "--left", "left.mkv", "--right", "right.mkv", "--calibration", "calib.txt", "-d", "64"]
        draw_page(command, folder)
        draw_window(command, folder)


def draw_page(command, folder):
    command = [*command, "--headless", "--serve", "0", "--record", "out.mkv", "--set=source.pace=realtime"]
    with sync_playwright() as playwright, subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        url = next(match[1] for line in process.stderr if (match := re.search(r"page on (\S+)", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 600}, color_scheme="dark").new_page()
        page.goto(url)
        page.locator("#canvas[data-seq]").wait_for()
        page.wait_for_timeout(6000)
        box = page.locator("#canvas").bounding_box()
        page.mouse.move(box["x"] + PROBE[0] * box["width"], box["y"] + PROBE[1] * box["height"])
        page.wait_for_timeout(1000)
        Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(IMAGES / "page.jpg", quality=88)
        browser.close()
        process.terminate()


def draw_window(command, folder):
    """The disparity beside the left image, then the points in space, which the mouse turns to the side and back."""
    environment = {**os.environ, "DISPLAY": ":97"}
    act = lambda *words: subprocess.run(["xdotool", *map(str, words)], env=environment, check=True)
    def shot():
        data = subprocess.run(["import", "-window", "root", "png:-"], env=environment, check=True, capture_output=True).stdout
        return Image.open(io.BytesIO(data)).convert("RGB").resize((WINDOW[0] * 3 // 4, WINDOW[1] * 3 // 4), Image.LANCZOS)
    with subprocess.Popen(["Xvfb", ":97", "-screen", "0", "{}x{}x24".format(*WINDOW)]) as server:
        time.sleep(2)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=folder, env=environment, **quiet) as process:
            time.sleep(20)
            act("search", "--name", "stereod", "windowmove", 0, 0, "windowsize", *WINDOW, "windowfocus")
            act("key", "space")
            time.sleep(3)
            frames = [(shot(), 1500)]
            act("key", "3")
            middle = WINDOW[0] // 2, WINDOW[1] // 3
            act("mousemove", *middle, "click", "--repeat", 3, "--delay", 300, 4, "mousedown", 1)
            for number in range(TURNS):
                turn = math.sin(2 * math.pi * number / TURNS)
                act("mousemove", round(middle[0] + TURN * turn), round(middle[1] + TURN / 5 * abs(turn)))
                time.sleep(1.5)
                frames.append((shot(), 80))
            act("mouseup", 1)
            process.terminate()
        server.terminate()
    first, *others = [frame for frame, _ in frames]
    first.save(IMAGES / "turning.webp", save_all=True, append_images=others, loop=0, quality=60, method=6,
               duration=[duration for _, duration in frames])


if __name__ == "__main__":
    main()
