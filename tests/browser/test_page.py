"""The live page in Chromium, against a mock of the protocol and the real program."""

import asyncio
import io
import re
import threading
import time

import aiohttp
import numpy as np
import pytest
from conftest import frames, real_or_skip, sent, texts, until, wait_for_frame
from mock import FILES, GEOMETRY, HEIGHT, TOKEN, UNKNOWN, WIDTH, Mock
from PIL import Image

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}


def colours_of(disparity, table, span):
    """The page's colours, in whole numbers."""
    low, high = (round(limit * 16) for limit in span)
    width = max(high - low, 1)
    entry = (np.clip(disparity.astype(int) - low, 0, width) * 255 + width // 2) // width
    colours = np.array(table, "u1")[entry]
    colours[disparity == UNKNOWN] = 0
    return colours


def seq(page):
    return int(page.locator("#canvas").get_attribute("data-seq"))


def pause(page):
    """Pauses the run, and returns header, disparity and confidence of the frame on the screen."""
    page.click("#pause")
    page.get_by_role("button", name="Resume").wait_for()
    page.wait_for_timeout(700)
    return next(frame for frame in reversed(frames(page)) if frame[0]["seq"] == seq(page))


def saved_view(page):
    with page.expect_download() as download:
        page.keyboard.press("s")
    return np.asarray(Image.open(download.value.path()).convert("RGB")), download.value.suggested_filename


def screen(page):
    data = page.locator("#canvas").screenshot()
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def point_at(page, column, row, header):
    """Moves the mouse to a pixel of the single image on the stage."""
    box = page.locator("#canvas").bounding_box()
    scale = min(box["width"] / header["width"], box["height"] / header["height"])
    x = box["x"] + (box["width"] - scale * header["width"]) / 2 + (column + 0.5) * scale
    y = box["y"] + (box["height"] - scale * header["height"]) / 2 + (row + 0.5) * scale
    page.mouse.move(x, y)
    return x - box["x"], y - box["y"]


def knob(page, name):
    return page.locator(f'.knob[data-name="{name}"]')


def test_files_are_small():
    sizes = {path.name: path.stat().st_size for path in FILES.glob("page.*")}
    assert set(sizes) == {"page.html", "page.js", "page.css"}
    assert sum(sizes.values()) < 60_000, sizes


def test_colours_are_those_of_the_table(server, open_page):
    page = open_page(server.url)
    page.keyboard.press("2")
    header, disparity, _ = pause(page)
    said = (texts(page, "knobs") or texts(page, "hello"))[-1]
    wanted = colours_of(disparity, said["colours"], said["colour_span"])
    got, name = saved_view(page)
    assert re.fullmatch(r"stereod-disparity-\d+\.png", name)
    assert np.array_equal(got, wanted)
    # The same on the screen, in the middle of some pixels.
    shown = screen(page)
    for column, row in [(110, 120), (160, 40), (200, 230), (250, 40), (10, 100)]:
        column, row = column // header["scale"], row // header["scale"]
        x, y = point_at(page, column, row, header)
        page.mouse.move(0, 0)
        assert np.abs(shown[int(y), int(x)] - wanted[row, column]).max() <= 1, (column, row)


def test_the_painter_without_webgl_agrees(mock, open_page):
    no_gl = """const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
            return kind === "webgl2" ? null : get.call(this, kind, ...more); };"""
    page = open_page(mock.url, script=no_gl)
    page.keyboard.press("2")
    got, _ = saved_view(page)
    assert np.array_equal(got, colours_of(mock.disparity, mock.table(), mock.span()))
    assert page.locator('#views input[value="points"]').is_disabled()
    for view in ("1", "3", "4"):
        page.keyboard.press(view)
        assert screen(page).std() > 10


def test_values_under_the_mouse_are_those_sent(server, open_page):
    page = open_page(server.url)
    page.keyboard.press("2")
    header, disparity, confidence = pause(page)
    g, readout = header["geometry"], page.locator("#readout")
    for column, row in [(110, 120), (60, 100), (160, 40), (300, 230), (250, 40), (10, 100)]:
        column, row = column // header["scale"], row // header["scale"]
        point_at(page, column, row, header)
        raw = int(disparity[row, column])
        shown = readout.inner_text()
        assert [int(readout.get_attribute("data-" + k)) for k in ("column", "row", "raw")] == [column, row, raw]
        assert f"x {column * header['scale']} y {row * header['scale']}" in " ".join(shown.split())
        if raw == UNKNOWN:
            assert "unknown" in shown
            continue
        px = float(re.search(r"(-?[\d.]+) px", shown)[1])
        assert abs(px - raw / 16) < 0.0051
        if confidence is not None and confidence[row, column]:
            assert f"confidence {confidence[row, column]}" in shown
        if g:
            z = g["focal_px"] * g["baseline_m"] / (raw / 16 - (g["centre_x_px"] - g["right_centre_x_px"]))
            metres = re.search(r"([\d.]+) m\b", shown)
            assert metres is None if z <= 0 else abs(float(metres[1]) / z - 1) < 0.006
        else:
            assert " m" not in shown


def test_without_a_calibration_there_are_no_metres(open_page):
    server = Mock(calibrated=False).start()
    try:
        page = open_page(server.url)
        assert page.locator("#ticks").inner_text().endswith("63 px")
        page.click("#shoot")
        assert page.locator("#png").is_visible() and not page.locator("#ply").is_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("5")
        assert "no calibration" in page.locator("#readout").inner_text()
        assert screen(page).std() > 10
    finally:
        server.stop()


def test_legend_is_in_metres(mock, open_page):
    page = open_page(mock.url)
    g = GEOMETRY
    nearest = g["focal_px"] * g["baseline_m"] / (63 - (g["centre_x_px"] - g["right_centre_x_px"]))
    until(lambda: page.locator("#ticks").inner_text().endswith(f"{nearest:.3f} m"))


def test_points_rotate_zoom_and_move(server, open_page):
    page = open_page(server.url)
    page.keyboard.press("5")
    pause(page)
    first = screen(page)
    assert first.std() > 10
    def changed(before):
        page.wait_for_timeout(200)
        after = screen(page)
        assert (np.abs(after - before).max(axis=2) > 20).mean() > 0.02
        return after
    page.mouse.move(600, 400)
    page.mouse.down()
    page.mouse.move(720, 430, steps=4)
    page.mouse.up()
    turned = changed(first)
    page.mouse.wheel(0, -400)
    nearer = changed(turned)
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(600, 300, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    moved = changed(nearer)
    page.locator("#canvas").focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    changed(moved)
    page.click("#home")
    page.wait_for_timeout(200)
    assert (np.abs(screen(page) - first).max(axis=2) > 20).mean() < 0.01


def test_views_show_both_images(server, open_page):
    page = open_page(server.url)
    pause(page)
    images = {}
    for view, count in [("1", 2), ("2", 1), ("3", 1), ("4", 1)]:
        page.keyboard.press(view)
        images[view], _ = saved_view(page)
        assert abs(images[view].shape[1] / (count * WIDTH) - 1) < 0.02
    width = images["3"].shape[1]
    assert np.array_equal(images["1"][:, :width], images["3"])
    assert np.array_equal(images["1"][:, -width:], images["2"])
    mixed = 0.45 * images["3"].astype(float) + 0.55 * images["2"]
    known = images["2"].any(axis=2)
    assert np.abs(images["4"] - mixed)[known].max() <= 2
    assert np.array_equal(images["4"][~known], images["3"][~known])


def test_tuning_sends_every_value_and_shows_a_problem(mock, open_page):
    page = open_page(mock.url)
    page.keyboard.press("t")
    field = knob(page, "matching.p1").locator("input[type=text]")
    field.fill("9")
    field.press("Enter")
    until(lambda: mock.value("matching", "p1") == "9")
    open_knobs = [k for k in mock.knobs if not k["locked"]]
    assert sent(page, "tune")[-1]["values"] == [[k["section"], k["key"], k["value"]] for k in open_knobs]
    until(lambda: page.locator("#effect").inner_text() == "in effect")

    field.fill("many")
    field.press("Enter")
    until(lambda: "not 'many'" in page.locator("#effect").inner_text())
    assert mock.value("matching", "p1") == "9" and field.input_value() == "many"

    field.fill("11")
    field.press("Enter")
    knob(page, "matching.cost").locator("select").select_option("census")
    knob(page, "filters.consistency").locator("input").uncheck()
    knob(page, "matching.p2").locator(".word").click()
    until(lambda: [mock.value(*n) for n in [("matching", "p1"), ("matching", "cost"), ("filters", "consistency"),
                                            ("matching", "p2")]] == ["11", "census", "false", "86"])
    slider = knob(page, "filters.uniqueness").locator("input[type=range]")
    slider.focus()
    slider.press("ArrowRight")
    until(lambda: mock.value("filters", "uniqueness") == "10.5")
    numbers = [m["number"] for m in sent(page, "tune")]
    assert numbers == list(range(1, len(numbers) + 1))

    locked = knob(page, "matching.disparities")
    assert all(item.is_disabled() for item in locked.locator("input, button").all())
    assert "the recording keeps its range" in locked.inner_text()
    assert "Cannot change in this run" in locked.get_attribute("title")

    page.click("#save")
    page.get_by_text("settings saved to tuned.toml").wait_for()
    page.click("#reset")
    until(lambda: field.input_value() == "7")
    page.locator("#canvas").focus()
    page.keyboard.press("c")
    until(lambda: mock.value("colour", "map") == "grey")
    page.keyboard.press("2")
    until(lambda: np.array_equal(saved_view(page)[0], colours_of(mock.disparity, mock.table(), mock.span())))


def test_tuning_of_the_program(real, open_page):
    page = open_page(real.url)
    page.keyboard.press("t")
    select = knob(page, "colour.map").locator("select")
    select.select_option("viridis")
    until(lambda: any(k["value"] == "viridis" for m in texts(page, "knobs") for k in m["knobs"] if k["key"] == "map"))
    until(lambda: page.locator("#effect").inner_text() == "in effect")
    field = page.locator("#knobs input[type=text]:enabled").first
    field.fill("many")
    field.press("Enter")
    page.locator("#effect.alarm").wait_for()
    page.click("#reset")
    until(lambda: select.input_value() == "turbo")


def test_reconnects_after_a_restart(open_page):
    server = Mock().start()
    again = None
    try:
        page = open_page(server.url, allow=["WebSocket connection"])
        assert "token" not in page.url
        server.stop()
        until(lambda: "Connection lost" in page.locator("#state").inner_text())
        before = seq(page)
        again = Mock(port=server.port).start()
        again.seq = before + 1000
        until(lambda: page.locator("#state").inner_text() == "Live" and seq(page) > before + 1000, 30)
        page.reload()
        wait_for_frame(page)
        assert page.locator("#pause").is_visible()
    finally:
        if again:
            again.stop()


def test_reconnects_after_a_restart_of_the_program(open_page):
    server = real_or_skip()
    page = open_page(server.url, allow=["WebSocket connection", "Failed to load"])
    server.stop()
    until(lambda: page.locator("#state").get_attribute("data-state") == "lost")
    again = real_or_skip(port=server.port)
    try:
        # A new run has a new token unless it was told to keep one.
        until(lambda: page.locator("#state").inner_text() in ("Live", "Token refused"), 40)
        if page.locator("#token").is_visible():
            page.fill("#token", again.url.split("token=")[1])
            page.keyboard.press("Enter")
        until(lambda: page.locator("#state").inner_text() == "Live", 20)
    finally:
        again.stop()


def test_two_clients(server, open_page):
    pages = [open_page(server.url) for _ in range(2)]
    marks = [seq(page) for page in pages]
    until(lambda: all(seq(page) > mark + 10 for page, mark in zip(pages, marks)), 30)
    pages[0].click("#pause")
    pages[1].get_by_role("button", name="Resume").wait_for()


def test_a_wrong_token_is_explained(server, open_page):
    page = open_page(server.url.split("token=")[0] + "token=wrong", wait=False,
                     allow=["WebSocket connection", "Failed to load"])
    until(lambda: "token" in page.locator("body").inner_text().lower())
    page.locator("#token").wait_for()
    assert page.locator("#state").inner_text() == "Token refused"
    page.fill("#token", server.url.split("token=")[1])
    page.keyboard.press("Enter")
    wait_for_frame(page)
    assert not page.locator("#message").is_visible()


def test_without_a_token_nothing_can_change(mock, open_page):
    page = open_page(mock.url.split("?")[0])
    assert not page.locator("#pause").is_visible() and not page.locator("#tune").is_visible()
    for key in (" ", "t", "w", "c"):
        page.keyboard.press(key)
    assert not page.locator("#tuning").is_visible()
    page.wait_for_timeout(300)
    assert {m["type"] for m in mock.received} == {"quality"}


def test_status_names_each_loss(mock, open_page):
    mock.banners = [{"text": "left camera gone", "trouble": True}]
    page = open_page(mock.url)
    until(lambda: page.locator("#banners").inner_text() == "left camera gone")
    assert page.locator("#rate").inner_text() == "29.9 pairs/s"
    assert page.locator("#latency").inner_text() == "8.1 ms"
    page.keyboard.press("i")
    facts = page.locator("#facts").inner_text()
    for words in ["1 left and 2 right frames without a partner", "3 pairs dropped", "depth.mkv: 4 dropped",
                  "CPU (AVX-512, 2 threads)", "87.0 %", "rows 0.0 px", "noise 2.1"]:
        assert words in facts, words
    assert "noise 2.1" in page.locator("#facts .alarm").inner_text()


def test_half_size(server, open_page):
    page = open_page(server.url)
    page.keyboard.press("i")
    page.select_option("#size", "half")
    header, disparity, _ = until(lambda: next((f for f in frames(page) if f[0]["scale"] == 2), None))
    assert disparity.shape == (header["height"], header["width"]) == (HEIGHT // 2, WIDTH // 2)
    until(lambda: "160x120" in page.locator("#facts").inner_text())


def test_downloads(server, open_page):
    page = open_page(server.url)
    page.click("#shoot")
    with page.expect_download() as download:
        page.click("#png")
    image = Image.open(download.value.path())
    assert image.size == (WIDTH, HEIGHT) and image.mode.startswith("I")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_phone_has_no_sideways_scrolling(mock, open_page, scheme):
    mock.banners = [{"text": "a long message " * 8 + "x" * 80, "trouble": True}]
    page = open_page(mock.url, color_scheme=scheme, **PHONE)
    def fits():
        assert page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [390, 390]
        over = page.evaluate("""[...document.querySelectorAll("body *")].filter((e) => {
            const box = e.getBoundingClientRect();
            return box.width > 1 && box.right > 391 && getComputedStyle(e).visibility === "visible";
        }).map((e) => e.id || e.className || e.tagName)""")
        assert not over, over
    page.wait_for_timeout(1200)
    fits()
    for opener in ("#tune", "#about", "#shoot", "#ask"):
        page.tap(opener)
        fits()
    page.tap("#help .close")
    page.tap('#views label:has([value="disparity"])')
    box = page.locator("#canvas").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#readout").get_attribute("data-raw")
    small = page.evaluate("""[...document.querySelectorAll("header button, #views span")]
        .filter((e) => e.getBoundingClientRect().height && e.getBoundingClientRect().height < 36).length""")
    assert small == 0


def test_the_keyboard_alone_reaches_everything(mock, open_page):
    page = open_page(mock.url)
    page.keyboard.press("4")
    page.keyboard.press("t")
    page.evaluate("document.activeElement.blur()")
    wanted = set(page.evaluate("""[...document.querySelectorAll("button, input, select, a[href], canvas[tabindex]")]
        .filter((e) => !e.disabled && e.getClientRects().length && (e.type !== "radio" || e.checked))
        .map((e, i) => e.dataset.tab = String(i))"""))
    reached = set()
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
        at = page.evaluate("""(() => { const e = document.activeElement, s = getComputedStyle(e);
            const ring = e.type === "radio" ? getComputedStyle(e.nextElementSibling) : s;
            return [e.dataset.tab || "", ring.outlineStyle !== "none" && ring.outlineWidth !== "0px"]; })()""")
        if at[0]:
            assert at[1], "no visible focus"
        reached.add(at[0])
    assert wanted <= reached, wanted - reached
    # The views by arrows, the menu by Enter and Escape, the pause by Space on the page.
    page.locator('#views input:checked').focus()
    page.keyboard.press("ArrowRight")
    assert page.locator('#views input[value="points"]').is_checked()
    page.locator("#shoot").focus()
    page.keyboard.press("Enter")
    assert page.locator("#shots").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#shots").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#tuning").is_visible()
    page.keyboard.press("h")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.locator("#canvas").focus()
    page.keyboard.press("2")
    page.keyboard.press("ArrowRight")
    assert page.locator("#readout").get_attribute("data-column") == str(WIDTH // 2 + 1)
    page.keyboard.press("Space")
    until(lambda: mock.paused)
    names = page.evaluate("""[...document.querySelectorAll("button, input, select, a[href]")].filter((e) =>
        !(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length) || e.tagName === "SELECT")).length""")
    assert names == 0


def test_frames_are_acknowledged_in_order_when_drawn(mock, open_page):
    page = open_page(mock.url)
    until(lambda: len(sent(page, "ack")) > 20)
    acks = [m["seq"] for m in sent(page, "ack")]
    assert acks == sorted(set(acks))


def test_the_policy_is_sent(server):
    import urllib.request
    with urllib.request.urlopen(server.url, timeout=10) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_a_stalled_client_costs_only_its_own_frames(real, open_page):
    page = open_page(real.url)

    def rate(seconds):
        before, start = len(sent(page, "ack")), time.monotonic()
        time.sleep(seconds)
        # The page's own timers go on; the count is read at the end.
        return (len(sent(page, "ack")) - before) / (time.monotonic() - start)

    alone = rate(5)
    got = []

    async def stall():
        origin = f"http://127.0.0.1:{real.port}"
        url = real.url.replace("/?", "/live?")
        async with aiohttp.ClientSession() as session, session.ws_connect(url, origin=origin) as socket:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                try:
                    message = await socket.receive(timeout=0.5)
                except asyncio.TimeoutError:
                    continue
                if message.type == aiohttp.WSMsgType.BINARY:
                    got.append(len(message.data))

    thread = threading.Thread(target=lambda: asyncio.run(stall()))
    thread.start()
    beside = rate(19)
    thread.join()
    assert 1 <= len(got) <= 2, "at most two frames are sent without an acknowledgement"
    assert beside > 0.8 * alone, (alone, beside)
