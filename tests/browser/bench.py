"""Measures the live page: time from sent to drawn, and processor time of the program for one client.

    STEREOD_TEST_PROGRAM=target/release/stereod target/browser-tools/bin/python tests/browser/bench.py \
        [SECONDS [ARGUMENTS OF stereod run]]

Without arguments it serves the demo scene of 640x480 pixels at 30/s with settings that two cores keep up with. The
page's files are those of the checkout if STEREOD_TEST_PAGE=1. Compare versions in turn: other programs on the
machine change the result more than most optimisations do.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from conftest import CHROMIUM, FLAGS, LOCAL, PROGRAM, serve_local
from playwright.sync_api import sync_playwright

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30
ARGUMENTS = sys.argv[2:] or ["--demo", "--frames", "0", "-d", "16", "--paths", "4", "--prior", "0"]

# Time from the header's `sent` until the page acknowledges the frame, which it does when it has drawn it.
SPY = """
window.drawn = [];
const sent = new Map(), Plain = WebSocket;
window.WebSocket = class extends Plain {
  set onmessage(handler) {
    super.onmessage = (event) => {
      if (typeof event.data !== "string") {
        const length = new DataView(event.data).getUint32(0, true);
        const header = JSON.parse(new TextDecoder().decode(new Uint8Array(event.data, 4, length)));
        sent.set(header.seq, header.sent);
      }
      return handler(event);
    };
  }
  send(data) {
    const { type, seq } = JSON.parse(data);
    if (type === "ack") drawn.push(performance.timeOrigin + performance.now() - sent.get(seq));
    super.send(data);
  }
};
"""


def main():
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
    command = [PROGRAM, "run", "--headless", "--serve", "0", "--set=source.pace=realtime", *ARGUMENTS]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            command, env={**environment, "XDG_CONFIG_HOME": folder}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True) as process, sync_playwright() as playwright:
        url = next(match[1] for line in process.stderr if (match := re.search(r"page on (\S+)", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()

        def load(seconds):
            """Processor time of the program in percent of a core."""
            def now():
                with open(f"/proc/{process.pid}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), time.monotonic()
            (cpu, start) = now()
            time.sleep(seconds)
            return 100 * (now()[0] - cpu) / (now()[1] - start)

        time.sleep(5)
        before = load(SECONDS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.add_init_script(SPY)
        if LOCAL:
            page.route(re.compile(r"^http://127\.0\.0\.1:\d+/(page\.(js|css))?(\?.*)?$"), serve_local)
        page.goto(url)
        page.locator("#canvas[data-seq]").wait_for()
        page.wait_for_timeout(5000)
        page.evaluate("drawn.length = 0")
        during, matched = load(SECONDS), page.locator("#rate").inner_text()
        drawn = sorted(page.evaluate("drawn"))
        browser.close()
        time.sleep(3)
        after = load(SECONDS)
        process.terminate()
    median, p95 = drawn[len(drawn) // 2], drawn[len(drawn) * 95 // 100]
    print(f"matched {matched}, drawn {len(drawn) / SECONDS:.1f}/s; sent to drawn: median {median:.1f} ms, p95 {p95:.1f} ms")
    print(f"program: {before:.1f} % of a core without a client, {during:.1f} % with one, {after:.1f} % after it: "
          f"{during - (before + after) / 2:+.1f} %")


if __name__ == "__main__":
    main()
