"""Two servers for the live page: a mock of the protocol, and the real program if STEREOD_TEST_PROGRAM names it."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from mock import Mock  # noqa: E402

PROGRAM = os.environ.get("STEREOD_TEST_PROGRAM")
CHROMIUM = os.environ.get("STEREOD_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

# Records the messages both ways, before the page's own script runs.
SPY = """
window.spied = {sent: [], frames: [], texts: []};
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", (event) => {
      if (typeof event.data === "string") window.spied.texts.push(JSON.parse(event.data));
      else window.spied.frames = [...window.spied.frames.slice(-3), event.data];
    });
  }
  send(data) { window.spied.sent.push(JSON.parse(data)); super.send(data); }
};
"""


class Real:
    """The program on its demo scene."""

    def __init__(self, port=0):
        command = [PROGRAM, "run", "--demo", "--demo-size", "320x240", "--headless", "--serve", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "NO_COLOR": "1"})
        self.lines, found = [], threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                address = re.search(r"page on (http://127\.0\.0\.1:(\d+)/\?token=\S+)", line)
                if address:
                    self.url, self.port = address[1], int(address[2])
                    found.set()
        threading.Thread(target=read, daemon=True).start()
        if not found.wait(60):
            self.process.kill()
            pytest.fail("no line 'page on http://...' from the program:\n" + "".join(self.lines))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def real_or_skip(**options):
    if not PROGRAM:
        pytest.skip("STEREOD_TEST_PROGRAM is not set: the real program is not tested")
    return Real(**options)


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def mock():
    server = Mock().start()
    yield server
    server.stop()


@pytest.fixture
def real():
    server = real_or_skip()
    yield server
    server.stop()


@pytest.fixture(params=["mock", "real"])
def server(request):
    """Either server."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def open_page(browser):
    """Opens pages; fails at the end if one logged an error or broke the Content-Security-Policy."""
    contexts, problems, allowed = [], [], []

    def open_one(url, wait=True, allow=(), script=None, **options):
        options = {"viewport": {"width": 1280, "height": 800}, "accept_downloads": True, **options}
        context = browser.new_context(**options)
        contexts.append(context)
        allowed.extend(allow)
        page = context.new_page()
        page.set_default_timeout(15000)
        page.add_init_script(SPY)
        if script:
            page.add_init_script(script)
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        if wait:
            wait_for_frame(page)
        return page

    yield open_one
    for context in contexts:
        context.close()
    # Chromium remarks that reading pixels back is slow; the screenshots of the tests do that.
    left = [p for p in problems if not any(word in p for word in ["ReadPixels", *allowed])]
    assert not left, left


def wait_for_frame(page):
    page.locator("#canvas[data-seq]").wait_for()


def until(condition, seconds=15, what="the condition"):
    """Polls; waits in a page would need eval, which the Content-Security-Policy forbids."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    pytest.fail(f"{what} did not come true within {seconds} s")


def sent(page, kind):
    """Messages of a type that the page has sent."""
    return [m for m in page.evaluate("window.spied.sent") if m["type"] == kind]


def texts(page, kind):
    """Text messages of a type that the page has received."""
    return [m for m in page.evaluate("window.spied.texts") if m["type"] == kind]


def frames(page):
    """The last frames received: (header, disparity, confidence) each."""
    import base64
    import struct
    import zlib

    import numpy as np

    raw = page.evaluate("""window.spied.frames.map((data) => {
        let text = "";
        for (const byte of new Uint8Array(data)) text += String.fromCharCode(byte);
        return btoa(text);
    })""")
    result = []
    for data in map(base64.b64decode, raw):
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(data[4:4 + length])
        at = 4 + length + header["jpeg"]
        shape = (header["height"], header["width"])
        steps = np.frombuffer(zlib.decompress(data[at:at + header["disparity"]]), "u1").reshape(2, *shape)
        at += header["disparity"]
        disparity = np.cumsum(steps[0] + 256 * steps[1].astype("u2"), axis=0, dtype="u2").view("i2")
        confidence = None
        if header["confidence"]:
            steps = np.frombuffer(zlib.decompress(data[at:at + header["confidence"]]), "u1")
            confidence = np.cumsum(steps.reshape(shape), axis=0, dtype="u1")
        result.append((header, disparity, confidence))
    return result
