"""The program on its demo scene, and pages in Chromium that look at it."""

import base64
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

PROGRAM = os.environ["STEREOD_TEST_PROGRAM"]
CHROMIUM = os.environ.get("STEREOD_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
         "--host-resolver-rules=MAP *.example 127.0.0.1", "--ignore-certificate-errors",
         # Chromium must not refuse what the program has to refuse.
         "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"]
# The page's files are part of the program. With STEREOD_TEST_PAGE=1 those of the checkout are tested instead.
FILES = Path(__file__).resolve().parents[2] / "src" / "serve" / "live"
LOCAL = os.environ.get("STEREOD_TEST_PAGE") == "1"
WIDTH, HEIGHT = 320, 240
UNKNOWN = -32768

# Records the messages both ways, before the page's own script runs. Fields of `altered`, by type of
# message, replace those that the page gets, for states that are hard to bring about.
SPY = """
window.spied = {sent: [], frames: [], texts: [], still: 0};
window.altered = {};
window.opened = 0;
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...address) { super(...address); window.opened += 1; }
  set onmessage(handler) {
    super.onmessage = (event) => {
      if (typeof event.data !== "string") {
        window.spied.frames = [...window.spied.frames.slice(-3), event.data];
        window.spied.still = 0;
        return handler(event);
      }
      const message = JSON.parse(event.data);
      window.spied.texts.push(message);
      // States during a pause after the last image.
      if (message.type === "status") window.spied.still = message.paused ? window.spied.still + 1 : 0;
      return handler({data: JSON.stringify({...message, ...window.altered[message.type]})});
    };
  }
  send(data) { window.spied.sent.push(JSON.parse(data)); super.send(data); }
};
"""


DEMO = ["--demo", "--demo-size", f"{WIDTH}x{HEIGHT}"]


class Program:
    """`stereod run --serve`, of the demo scene unless another source is given."""

    def __init__(self, folder, *arguments, port=0, source=DEMO, frames=0):
        command = [PROGRAM, "run", *source, "--frames", str(frames), "-d", "64", "--headless", "--serve", str(port),
                   "--set=source.pace=realtime", "--set=colour.range=fixed", *arguments]
        # The program reads settings from variables STEREOD_..., and refuses those of the tests.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
        environment |= {"NO_COLOR": "1", "XDG_CONFIG_HOME": str(folder)}
        self.folder, self.lines, ready = folder, [], threading.Event()
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.url = None

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                if address := re.search(r"page on (http://127\.0\.0\.1:(\d+)/\S*)", line):
                    self.url, self.port = address[1], int(address[2])
                    ready.set()
            ready.set()
        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(60) or not self.url:
            self.stop()
            pytest.fail("no line 'page on http://...' from the program:\n" + "".join(self.lines))

    @property
    def base(self):
        """Address of the page without the token."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def token(self):
        return self.url.split("token=")[1]

    def memory(self):
        """Resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1024

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def run(tmp_path):
    """Starts programs, all in one folder."""
    programs = []

    def start(*arguments, **options):
        programs.append(Program(tmp_path, *arguments, **options))
        return programs[-1]

    yield start
    for program in programs:
        program.stop()


@pytest.fixture
def program(run):
    """The program with a calibration."""
    return run("--focal", "300", "--baseline", "0.12")


def serve_local(route):
    """Answers with the checkout's file and the program's headers."""
    name = route.request.url.split("?")[0].split("/", 3)[3] or "page.html"
    answer = route.fetch()
    if not (FILES / name).exists():  # The keys are part of the program.
        return route.fulfill(response=answer)
    headers = {k: v for k, v in answer.headers.items() if k not in ("content-length", "content-encoding")}
    route.fulfill(status=answer.status, headers=headers, body=(FILES / name).read_bytes())


@pytest.fixture
def open_page(browser):
    """Opens pages; fails at the end if one logged an error or broke the Content-Security-Policy."""
    contexts, problems, allowed = [], [], []

    def open_one(url, wait=True, allow=(), script="", **options):
        options = {"viewport": {"width": 1280, "height": 800}, "accept_downloads": True, **options}
        context = browser.new_context(**options)
        contexts.append(context)
        allowed.extend(allow)
        page = context.new_page()
        page.set_default_timeout(60000)
        # Full size, whatever the speed of this machine, unless a test chooses another.
        page.add_init_script("localStorage.getItem('stereod.size') || localStorage.setItem('stereod.size', 'full');")
        page.add_init_script(SPY + script)
        if LOCAL:
            page.route(re.compile(r"^http://127\.0\.0\.1:\d+/(page\.(js|css)|page/\w+\.js)?(\?.*)?$"), serve_local)
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        if wait:
            wait_for_frame(page)
            # The first images are small on any connection.
            if page.evaluate("localStorage.getItem('stereod.size')") == "full":
                until(lambda: frames(page)[-1][0]["scale"] == 1)
        return page

    yield open_one
    for context in contexts:
        context.close()
    # Chromium remarks that reading pixels back is slow; the screenshots of the tests do that.
    left = [p for p in problems if not any(word in p for word in ["ReadPixels", *allowed])]
    assert not left, left


def wait_for_frame(page):
    page.locator("#canvas[data-seq]").wait_for()


def until(condition, seconds=60, what="the condition"):
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
    """Text messages of a type that the program has sent."""
    return [m for m in page.evaluate("window.spied.texts") if m["type"] == kind]


def frames(page):
    """The last frames received: (header, disparity, confidence) each."""
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
        steps = np.frombuffer(zlib.decompress(data[at:at + header["confidence"]]), "u1")
        confidence = np.cumsum(steps.reshape(shape), axis=0, dtype="u1")
        result.append((header, disparity, confidence))
    return result
