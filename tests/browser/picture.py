"""Draws the picture of the live page in README, docs/images/page.jpg, from a stereo pair of Middlebury 2014.

    STEREOD_TEST_PROGRAM=target/release/stereod target/browser-tools/bin/python tests/browser/picture.py \
        LEFT RIGHT FOCAL_PX BASELINE_M DOFFS
"""

import io
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from conftest import CHROMIUM, FLAGS, PROGRAM
from PIL import Image
from playwright.sync_api import sync_playwright

LEFT, RIGHT, FOCAL, BASELINE, DOFFS = sys.argv[1:]
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "page.jpg"
# The piano stool, as shares of width and height of the canvas.
PROBE = 0.2, 0.63


def main():
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
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
        command = [PROGRAM, "run", "--left", "left.mkv", "--right", "right.mkv", "--calibration", "calib.txt", "-d", "64",
                   "--headless", "--serve", "0", "--record", "out.mkv", "--set=source.pace=realtime"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
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
            Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(PICTURE, quality=88)
            browser.close()
            process.terminate()


if __name__ == "__main__":
    main()
