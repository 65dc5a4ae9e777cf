"""The live page of the program in Chromium."""

import http.client
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import link
import pytest
from conftest import FILES, HEIGHT, LOCAL, UNKNOWN, WIDTH, frames, sent, texts, until, wait_for_frame
from PIL import Image
from playwright.sync_api import Error

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
# Chromium logs refused connections, which some tests provoke.
REFUSED = ["WebSocket connection", "Failed to load"]
# Seconds that a client stalls; 60 for releases (CONTRIBUTING.md).
STALL_S = float(os.environ.get("STEREOD_TEST_STALL_S", "8"))


def colours_of(disparity, header, page):
    """The page's colours of numbers in 1/16 px of a frame, in whole numbers."""
    low, high = (round(limit * 16) for limit in header["colour_span"])
    table = texts(page, "knobs")[-1]["colours"]
    width = max(high - low, 1)
    entry = (np.clip(disparity.astype(int) - low, 0, width) * 255 + width // 2) // width
    colours = np.array(table, "u1")[entry]
    colours[disparity == UNKNOWN] = table[-1]
    return colours


def seq(page):
    return int(page.locator("#canvas").get_attribute("data-seq"))


def settled(page):
    """Returns header, disparity and confidence of the frame on the screen, once the run is paused and none is on its way:
    none came between two states, which are sent in their order."""
    def last():
        got = frames(page)[-1]
        return got if page.evaluate("window.spied.still") > 1 and got[0]["seq"] == seq(page) else None
    return until(last)


def pause(page):
    page.click("#pause")
    page.get_by_role("button", name="Resume").wait_for()
    return settled(page)


def saved_view(page):
    with page.expect_download() as download:
        page.keyboard.press("s")
    return np.asarray(Image.open(download.value.path()).convert("RGB")), download.value.suggested_filename


def screen(page):
    data = page.locator("#canvas").screenshot()
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def place_of(page, column, row, header):
    """Position in the canvas of a pixel of the only image on it."""
    box = page.locator("#canvas").bounding_box()
    scale = min(box["width"] / header["width"], box["height"] / header["height"])
    x = (box["width"] - scale * header["width"]) / 2 + (column + 0.5) * scale
    y = (box["height"] - scale * header["height"]) / 2 + (row + 0.5) * scale
    return x, y


def point_at(page, column, row, header):
    """Moves the mouse to a pixel of the only image on the stage."""
    box = page.locator("#canvas").bounding_box()
    x, y = place_of(page, column, row, header)
    page.mouse.move(box["x"] + x, box["y"] + y)


def banners(page):
    """The messages, without those that depend on the speed of this machine."""
    lines = page.locator("#banners p > span").all_text_contents()
    return [line for line in lines if "s old" not in line and "too slowly" not in line]


def age(page):
    """Age of the image in seconds, as the page tells it; 0 if it does not."""
    number = re.fullmatch(r"([\d.]+) (ms|s)", page.locator("#age").inner_text())
    return float(number[1]) / (1000 if number[2] == "ms" else 1) if number else 0


def knob(page, name):
    return page.locator(f'.knob[data-name="{name}"]')


def unfold(page, heading):
    """Shows the rare knobs below a heading."""
    page.locator(f'fieldset:has(legend:text-is("{heading}")) summary').click()


def value_of(page, name):
    """A knob's value, as the program reported it last."""
    knobs = texts(page, "knobs")[-1]["knobs"]
    return next(k["value"] for k in knobs if f"{k['section']}.{k['key']}" == name)


def recorded(program, number):
    """A recorded disparity in 1/16 px."""
    file = program.folder / "out" / f"{number:06}.png"
    until(file.exists, what=file.name)
    stored = np.asarray(Image.open(file)).astype(int)
    return np.where(stored == 0, UNKNOWN, stored // 16)


def test_files_are_small():
    sizes = {path.name: path.stat().st_size for path in [*FILES.glob("page.*"), *FILES.glob("page/*.js")]}
    assert {"page.html", "page.js", "page.css", "state.js"} <= set(sizes)
    assert sum(sizes.values()) < 126_000, sizes


# Places of the demo scene above the ball's reach, as shares of width and height, with their disparity for
# 64 candidates: the column's front at depth 2.9, the rear wall, and the left wall, which the camera's
# movement changes.
PLACES = [((0.73, 0.1), 63 / 2.9, 0.4), ((0.5, 0.1), 63 * 0.13, 0.5), ((0.2, 0.1), 63 * 0.334, 2.5)]


def test_the_demo_scene_has_its_disparities_and_colours(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("2")
    header, disparity, _ = pause(page)
    wanted = colours_of(disparity, header, page)
    got, name = saved_view(page)
    assert re.fullmatch(r"stereod-\d{6}-\d+\.\d{3}s-disparity\.png", name)
    assert np.array_equal(got, wanted)
    shown = screen(page)
    for (across, down), px, tolerance in PLACES:
        column, row = int(across * WIDTH), int(down * HEIGHT)
        possible = np.arange(round(16 * (px - tolerance)), round(16 * (px + tolerance)) + 1)
        found = []
        for i in range(9):
            x, y = place_of(page, column + i % 3, row + i // 3, header)
            found.append(np.abs(shown[int(y), int(x)] - colours_of(possible, header, page).astype(int)).max(axis=1).min() <= 1)
        # Single pixels may be unknown.
        assert sum(found) >= 6, (column, row, px, disparity[row:row + 3, column:column + 3] / 16)
    # The left image: the column is bright, the rear wall is not.
    page.keyboard.press("4")
    left, _ = saved_view(page)
    part = lambda across: left[:40, int((across - 0.03) * WIDTH):int((across + 0.03) * WIDTH)].mean()
    assert part(0.73) > 150 > part(0.5), (part(0.73), part(0.5))


def test_values_under_the_mouse_are_those_recorded(run, open_page):
    program = run("--pictures", "out", "--focal", "300", "--baseline", "0.12")
    page = open_page(program.url)
    page.keyboard.press("2")
    header, disparity, confidence = pause(page)
    stored = recorded(program, header["seq"])
    assert np.array_equal(disparity, stored)
    readout, unknown = page.locator("#readout"), np.argwhere(stored == UNKNOWN)[0]
    random = np.random.default_rng(1)
    places = [tuple(unknown), *zip(random.integers(0, HEIGHT, 20), random.integers(0, WIDTH, 20))]
    for row, column in places:
        raw = stored[row, column]
        # A banner that comes or goes moves the canvas under the mouse.
        for _ in range(20):
            point_at(page, column, row, header)
            shown = readout.inner_text()
            found = [int(readout.get_attribute("data-" + k)) for k in ("column", "row", "raw")]
            if found == [column, row, raw]:
                break
            page.wait_for_timeout(50)
        assert found == [column, row, raw]
        assert f"x {column} y {row}" in " ".join(shown.split())
        if raw == UNKNOWN:
            assert "unknown" in shown
            continue
        assert f"{raw / 16:.2f}"[:-1] in shown and abs(float(re.search(r"([\d.]+) px", shown)[1]) - raw / 16) < 0.0051
        assert f"confidence {round(int(confidence[row, column]) / 2.55)} %" in shown
        depth = re.search(r"([\d.]+) m\b", shown)
        assert abs(float(depth[1]) / (300 * 0.12 / (raw / 16)) - 1) < 0.006 if raw > 0 else depth is None
    # The download is the same file.
    page.click("#shoot")
    with page.expect_download() as download:
        page.click("#png")
    assert np.array_equal(np.asarray(Image.open(download.value.path())) // 16, np.where(stored == UNKNOWN, 0, stored))


def test_the_painter_without_webgl_agrees(program, open_page):
    no_gl = """const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
            return kind === "webgl2" ? null : get.call(this, kind, ...more); };"""
    page = open_page(program.url, script=no_gl)
    page.keyboard.press("2")
    header, disparity, _ = pause(page)
    assert np.array_equal(saved_view(page)[0], colours_of(disparity, header, page))
    assert page.locator('#views input[value="points"]').is_disabled()
    for view in ("1", "4", "5", "6"):
        page.keyboard.press(view)
        assert screen(page).std() > 10


def test_without_a_calibration_there_are_no_metres(run, open_page, tmp_path):
    rough = np.random.default_rng(3).integers(0, 256, (HEIGHT // 2, WIDTH // 2 + 8), np.uint8)
    texture = np.kron(rough, np.ones((2, 2), np.uint8))
    views = []
    for view, shift in [("left", 0), ("right", 12)]:
        Image.fromarray(texture[:, shift:shift + WIDTH]).save(tmp_path / f"{view}.png")
        still = f"filesrc location={view}.png ! pngdec ! imagefreeze is-live=true ! video/x-raw,framerate=10/1"
        views += [f"--{view}", still]
    page = open_page(run(source=views).url)
    until(lambda: page.locator("#ticks").inner_text().endswith("63 px"))
    page.click("#shoot")
    assert page.locator("#png").is_visible() and not page.locator("#ply").is_visible()
    page.keyboard.press("Escape")
    pause(page)
    page.keyboard.press("3")
    assert "no calibration" in page.locator("#grid").inner_text()
    assert screen(page).std() > 10


@pytest.mark.skipif(LOCAL, reason="the files of the checkout are served at the root only")
def test_each_rig_has_a_tab(run, open_page, tmp_path):
    still = "videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=320,height=240,framerate=5/1"
    config = f"[source]\nleft = '{still}'\nright = '{still}'\n[[rig]]\nname = 'front'\n[[rig]]\nname = 'rear'\n"
    config += f"source.right = '{still.replace('src ', 'src pattern=ball ')}'\n"
    (tmp_path / "rigs.toml").write_text(config)
    program = run("--config", "rigs.toml", source=[])
    page = open_page(program.url)
    assert page.url == program.base + "front/"
    # Both rigs warn, each on its own page.
    warnings = lambda: [one["text"] for status in texts(page, "status")[-1:] for one in status["warnings"]]
    until(lambda: any("the same picture" in text for text in warnings()))
    page.click("#rigs a:text('rear')")
    page.wait_for_url(program.base + "rear/")
    wait_for_frame(page)
    assert page.locator("#rigs a[aria-current]").inner_text() == "rear"
    until(lambda: any("times as bright" in text for text in warnings()))
    assert not any("the same picture" in text or "rear: " in text for text in warnings())
    # It still has the token.
    assert page.locator("#tune").is_visible()


def test_legend_and_cloud_are_in_metres(program, open_page):
    page = open_page(program.url)
    until(lambda: page.locator("#ticks").inner_text().endswith(f"{300 * 0.12 / 63:.3f} m"))
    with page.expect_download() as download:
        page.keyboard.press("p")
    assert download.value.path().read_bytes().startswith(b"ply\n")


def test_obstacles_are_drawn_from_above(run, open_page):
    program = run("--focal", "300", "--baseline", "0.12", "--set=obstacles.find=true", "--set=obstacles.far_m=4")
    page = open_page(program.url)
    page.wait_for_selector("#scan:not([hidden])")
    pause(page)
    scan = page.evaluate("""async () => {
        const { state } = await import("./page/state.js");
        return state.frame.header.obstacles;
    }""")
    nearest = scan["nearest"]
    said = page.locator("#near").inner_text()
    assert said.startswith(f"{nearest['distance_m']:.2f} m"), said
    side = "left" if nearest["direction_deg"] > 0 else "right"
    assert side in said or "ahead" in said
    # Colours of the canvas by direction: those of obstacles end at their distance.
    pixels = np.array(page.evaluate("""() => {
        const canvas = document.querySelector("#above");
        return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data];
    }""")).reshape(160, 240, 4)
    one = scan["scan"]
    middle = one["first_deg"] + one["bin_deg"] * len(one["states"]) / 2
    drawn = []
    for at, (state, distance) in enumerate(zip(one["states"], one["distances_m"])):
        if state != "o" or not 0.2 < distance / one["far_m"] < 0.9:
            continue
        angle = np.radians(one["first_deg"] + one["bin_deg"] * (at + 0.5) - middle)
        reach = 160 * distance / one["far_m"] - 2
        x, y = 120 - reach * np.sin(angle), 160 - reach * np.cos(angle)
        # Wedges are narrower than a pixel near the camera, and mixed with their neighbours.
        around = pixels[max(int(y) - 2, 0):int(y) + 3, max(int(x) - 2, 0):int(x) + 3]
        drawn.append(((around[..., 0] > 140) & (around[..., 2] < 90)).any())
    assert len(drawn) > 5 and np.mean(drawn) > 0.8, drawn


ZONES = """# At the door.
[[zone]]
name = "door"
image = [[0.1, 0.2], [0.4, 0.2], [0.4, 0.9]]

[[zone]]
name = "ahead"
floor = [[1, -0.5], [2, -0.5], [2, 0.5], [1, 0.5]]
height_m = [-0.3, 0.3]
"""
OBSTACLES = ["--focal", "300", "--baseline", "0.12", "--set=obstacles.far_m=4", "--set=demo.rate=10"]


def header_of(page):
    """The header of the image on the screen."""
    return page.evaluate("""async () => (await import("./page/state.js")).state.frame.header""")


def marks(page, kind):
    """Attributes of the marks over each pane: places as fractions of the pane, and the colour."""
    return page.evaluate("""(kind) => [...document.querySelectorAll("#ruler > svg")].map((pane) => {
        const [width, height] = ["width", "height"].map((name) => Number(pane.getAttribute(name)));
        return [...pane.querySelectorAll(kind)].map((mark) => [kind === "rect"
            ? ["x", "width"].map((name) => Number(mark.getAttribute(name)) / width)
            : mark.getAttribute("points").split(" ").map((at) => at.split(",").map((part, i) => part / [width, height][i])),
            mark.getAttribute("fill") || mark.getAttribute("stroke")]);
    })""", kind)


@pytest.mark.parametrize("rate", [None, 400_000])
def test_scan_and_zones_lie_over_the_pictures(run, open_page, tmp_path, rate):
    (tmp_path / "zones.toml").write_text(ZONES)
    program = run(*OBSTACLES, "--zones", "zones.toml")
    port = program.port if rate is None else link.SlowLink(program.port, rate).port
    page = open_page(f"http://127.0.0.1:{port}/?token={program.token}", wait=rate is None)
    page.wait_for_selector("#scan:not([hidden])")
    page.keyboard.press("n")
    until(lambda: not page.locator("#scan").is_visible() and marks(page, "rect") == [[], []])
    page.click("#around")
    page.locator("#scan").wait_for()
    page.click("#pause")
    page.get_by_role("button", name="Resume").wait_for()
    until(lambda: page.evaluate("window.spied.still") > 1)
    header = header_of(page)
    one, geometry = header["obstacles"]["scan"], header["geometry"]

    def column(degrees):
        return (geometry["centre_x_px"] - 300 * np.tan(np.radians(degrees)) + 0.5) / WIDTH
    panes = marks(page, "rect")
    assert len(panes) == 2 and len(panes[0]) == len(one["states"])
    for bins in panes:
        for at, ((x, width), colour) in enumerate(bins):
            left, right = (one["first_deg"] + (at + more) * one["bin_deg"] for more in (1, 0))
            assert abs(x - max(column(left), 0)) < 2e-4 and abs(x + width - min(column(right), 1)) < 2e-4
            state, distance = one["states"][at], one["distances_m"][at]
            red, green, _ = map(int, re.findall(r"\d+", colour)) if state == "o" else (0, 0, 0)
            assert (state == "o") == colour.startswith("rgb") and (state != "o" or abs(green - 55 * distance) <= 1), colour
    colours = {True: "#ff8a5c", False: "#6ee08c", None: "#d6dae0"}
    door, ahead = header["obstacles"]["zones"]
    for lines in marks(page, "polyline"):
        corners = {tuple(np.round(end, 3)) for line, colour in lines[:3] for end in line}
        assert corners == {(0.1, 0.2), (0.4, 0.2), (0.4, 0.9)}
        assert {colour for _, colour in lines[:3]} == {colours[door["occupied"]]}
        # The near face of the volume at 1 m, around the axis.
        volume = np.array([end for line, _ in lines[3:] for end in line])
        assert len(lines) == 3 + 12 and lines[3][1] == colours[ahead["occupied"]]
        assert np.allclose(volume[:, 0].min(), (geometry["centre_x_px"] - 150 + 0.5) / WIDTH, atol=2e-4)
        assert np.allclose(volume[:, 1].max(), (geometry["centre_y_px"] + 90 + 0.5) / HEIGHT, atol=2e-4)
    words = page.locator("#ruler text").all_text_contents()
    assert words[0].startswith("door") and words[1].startswith("ahead")
    if ahead["nearest"]:
        assert words[1] == f"ahead {ahead['nearest']['distance_m']:.2f} m"
    for view in ("7", "3"):
        page.keyboard.press(view)
        until(lambda: marks(page, "polyline") == [])


def test_zones_are_drawn_and_removed(run, open_page, tmp_path):
    (tmp_path / "zones.toml").write_text(ZONES)
    program = run(*OBSTACLES, "--zones", "zones.toml")
    # Banners, which come and go with the speed of this machine, would move the image under the finger.
    still = "window.altered.status = {banners: [], warnings: []};"
    page, other = open_page(program.url, script=still, **PHONE), open_page(program.base)
    names = lambda page: [zone["name"] for zone in header_of(page)["obstacles"]["zones"]]
    page.tap('#views label:has([value="left"])')
    # Also during a pause a change shows at once.
    page.tap("#pause")
    until(lambda: texts(page, "status")[-1]["paused"] and not banners(page))
    page.tap("#tune")
    page.tap("#draw")
    assert page.locator("#done").is_disabled()
    box, header = page.locator("#canvas").bounding_box(), header_of(page)
    for across, down in [(0.3, 0.3), (0.7, 0.3), (0.5, 0.8)]:
        x, y = place_of(page, across * header["width"] - 0.5, down * header["height"] - 0.5, header)
        page.touchscreen.tap(box["x"] + x, box["y"] + y)
    page.fill("#zone-name", "door")
    page.fill("#far-m", "3.5")
    page.tap("#done")
    until(lambda: "two zones" in page.locator("#corners").inner_text())
    page.fill("#zone-name", "yard")
    page.tap("#done")
    until(lambda: not page.locator("#zone").is_visible())
    # At once, for all, and in the file.
    until(lambda: names(page) == names(other) == ["door", "ahead", "yard"])
    file = tmp_path / "zones.toml"
    written = until(lambda: file.read_text() != ZONES and tomllib.loads(file.read_text()))
    assert file.read_text().startswith(ZONES)
    zone = written["zone"][2]
    assert (zone["name"], zone["near_m"], zone["far_m"]) == ("yard", 0, 3.5)
    assert np.allclose(zone["image"], [(0.3, 0.3), (0.7, 0.3), (0.5, 0.8)], atol=0.02)
    # Without the token nothing changes.
    other.evaluate("""async () => (await import("./page/tuning.js")).ask({type: "zone", edit: {remove: "yard"}})""")
    until(lambda: any("token" in (answer["problem"] or "") for one in texts(other, "knobs") for answer in one["answers"]))
    assert not other.locator("#tuning").is_visible()
    page.locator("#zone-list li", has_text="yard").get_by_role("button").tap()
    until(lambda: names(page) == names(other) == ["door", "ahead"])
    until(lambda: file.read_text().rstrip() == ZONES.rstrip())


def test_a_zone_is_drawn_by_the_keyboard_and_kept_until_the_end(run, open_page):
    page = open_page(run(*OBSTACLES, "--set=obstacles.find=true").url)
    page.keyboard.press("7")
    page.keyboard.press("t")
    page.locator("#draw").press("Enter")
    assert page.locator('#views input[value="left"]').is_checked()
    page.locator("#canvas").focus()
    for keys in (["ArrowRight"], ["Shift+ArrowRight"] * 3, ["Shift+ArrowDown"] * 3):
        for key in keys:
            page.keyboard.press(key)
        page.keyboard.press("Enter")
    page.fill("#zone-name", "by keys")
    page.keyboard.press("Enter")
    until(lambda: "--zones FILE" in page.locator("#note").inner_text())
    with page.expect_download() as download:
        page.click("#zones-toml")
    zone = tomllib.loads(download.value.path().read_text())["zone"][0]
    (x, y), right, below = zone["image"]
    assert zone["name"] == "by keys" and np.allclose(right, (x + 30 / WIDTH, y), atol=2e-4)
    assert np.allclose(below, (right[0], y + 30 / HEIGHT), atol=2e-4)
    # Escape leaves the panel, and with it a zone that is not done.
    page.click("#draw")
    page.keyboard.press("Escape")
    assert not page.locator("#tuning").is_visible()
    page.keyboard.press("t")
    assert not page.locator("#zone").is_visible()


def test_settings_of_obstacles_change_at_once(run, open_page):
    page = open_page(run(*OBSTACLES, "--set=obstacles.find=true").url)
    page.keyboard.press("t")

    def put(name, value):
        field = knob(page, name).locator("input[type=text]")
        field.fill(value)
        field.press("Enter")
    found = lambda: header_of(page)["obstacles"]
    put("obstacles.far_m", "2.5")
    until(lambda: found()["scan"]["far_m"] == 2.5)
    unfold(page, "Obstacles")
    put("obstacles.bin_deg", "5")
    until(lambda: found()["scan"]["bin_deg"] == 5)
    put("mount.pitch_deg", "7")
    put("mount.z_m", "0.5")
    until(lambda: found()["mount"] == {"position_m": [0, 0, 0.5], "attitude_deg": [0, 7, 0]})
    # More pixels than a direction has.
    put("obstacles.pixels", "90000")
    until(lambda: found()["nearest"] is None)
    put("obstacles.low_m", "3")
    until(lambda: "high_m" in page.locator("#effect").inner_text())
    assert value_of(page, "obstacles.low_m") == "auto"


def test_without_obstacles_nothing_covers_the_picture(program, open_page):
    page = open_page(program.url)
    assert not page.locator("#scan").is_visible() and not page.locator("#around").is_visible()
    page.keyboard.press("t")
    assert knob(page, "obstacles.far_m").count() == 0 and not page.locator("#zones").is_visible()


def track(page):
    """Numbers of the parts and of the points of the path on the screen."""
    line = page.locator("#path path").first.get_attribute("d")
    return line.count("M"), line.count("M") + line.count("L")


def test_the_path_from_above_grows_by_its_changes(run, open_page):
    program = run("--focal", "300", "--baseline", "0.12", "--odometry", "--set=demo.rate=10")
    page = open_page(program.url)
    page.locator("#path svg").wait_for()
    assert re.search(r" m, drift [\d.]+ %|lost: ", page.locator("#path div").inner_text())
    page.keyboard.press("k")
    assert not page.locator("#path").is_visible() and page.locator("#way").get_attribute("aria-pressed") == "false"
    page.click("#way")
    page.locator("#path svg").wait_for()
    until(lambda: len(texts(page, "path")) > 9)
    pause(page)
    # A client that comes later gets the same points. The vehicle ends the line.
    late = open_page(program.url)
    whole = texts(late, "path")[0]
    assert whole["keep"] == 0
    assert all(message["keep"] > 0 for message in texts(page, "path")[-3:] if whole["points"])
    until(lambda: track(late)[1] == track(page)[1] == len(whole["points"]) + 1)
    until(lambda: "odometry" in texts(page, "status")[-1])
    page.keyboard.press("i")
    page.locator("#facts dt", has_text="Odometry").wait_for()


def test_the_path_has_gaps_and_says_that_the_vehicle_is_lost(run, open_page):
    program = run("--focal", "300", "--baseline", "0.12", "--odometry")
    page = open_page(program.url)
    page.evaluate("""window.altered.path = {keep: 0, points: [[0, 0, 1], [0, -3, 0], [1, -6, 1], [2, -6, 0]], now: [2.5, -6, 90],
        square: [-3, -7, 8], bar_m: 2, text: "lost: too few points seen again", lost: true};""")
    page.locator("#path .alarm").wait_for()
    assert page.locator("#path .alarm").inner_text() == "lost: too few points seen again"
    assert page.locator("#path path").first.get_attribute("d") == "M0 0L0 -3M1 -6L2 -6L2.5 -6"
    assert page.locator("#path text").text_content() == "2 m"
    # Right of the start and above it, and the square is wholly in its panel.
    # Each pair draws them anew, so both are measured at once.
    vehicle, square = page.evaluate("""() => [".vehicle", "svg"].map(part => {
        const {x, y, width, height} = document.querySelector("#path " + part).getBoundingClientRect();
        return [x, y, width, height];
    })""")
    middle = [(vehicle[axis] + vehicle[axis + 2] / 2 - square[axis]) / square[axis + 2] for axis in (0, 1)]
    assert abs(middle[0] - 5.5 / 8) < 0.05 and abs(middle[1] - 1 / 8) < 0.05, middle
    page.set_viewport_size({"width": 320, "height": 640})
    box, stage = (page.locator(name).bounding_box() for name in ("#path", "#stage"))
    assert box["x"] >= stage["x"] and box["x"] + box["width"] <= 320 and box["y"] > stage["y"]


def test_without_odometry_there_is_no_path(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("k")
    assert not page.locator("#path").is_visible() and not page.locator("#way").is_visible()
    assert not texts(page, "path")


def test_points_rotate_zoom_and_move(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("3")
    pause(page)
    # The camera's distance is that of the present frame.
    page.click("#home")
    first = screen(page)
    assert first.std() > 10

    def changed(before):
        def differs():
            after = screen(page)
            return (np.abs(after - before).max(axis=2) > 20).mean() > 0.02 and [after]
        return until(differs)[0]

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
    until(lambda: (np.abs(screen(page) - first).max(axis=2) > 20).mean() < 0.01)


def luminance(colour):
    """Of WCAG 2."""
    parts = np.array(colour) / 255
    return np.where(parts > 0.04045, ((parts + 0.055) / 1.055) ** 2.4, parts / 12.92) @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_points_fill_the_view_and_far_ones_are_seen(program, open_page, size):
    page = open_page(program.url, viewport={"width": size[0], "height": size[1]})
    pause(page)
    page.keyboard.press("3")
    page.keyboard.press("d")

    def places():
        """Places of the points, as shares of the canvas."""
        return np.array(page.evaluate("""async () => {
            const { placeOf, pointAt } = await import("./page/points.js");
            const { canvas, state: { frame: { header } } } = await import("./page/state.js");
            const all = [...Array(header.width * header.height).keys()].filter((i) => i % 13 === 0);
            const points = all.map((i) => pointAt(i % header.width, Math.floor(i / header.width))).filter(Boolean);
            return points.map(placeOf).map((at) => at ? [at[0] / canvas.width, at[1] / canvas.height] : [9, 9]);
        }"""))

    def fill():
        at = places()
        extent = np.quantile(at, 0.95, axis=0) - np.quantile(at, 0.05, axis=0)
        return ((at > 0) & (at < 1)).all(axis=1).mean() > 0.9 and max(extent) > 0.6
    until(fill)
    colours = texts(page, "knobs")[-1]["colours"]
    ground = screen(page)[5, 5]
    assert tuple(ground) == tuple(colours[-1])
    far, back = sorted([luminance(colours[0]), luminance(ground)])
    assert (back + 0.05) / (far + 0.05) >= 3
    # Another size of the view fits them again, until the camera is moved.
    page.set_viewport_size({"width": size[1], "height": size[0]})
    until(fill)
    page.keyboard.press("+")
    before = places()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    until(lambda: np.ptp(places(), axis=0).max() != np.ptp(before, axis=0).max())
    page.keyboard.press("-")
    page.keyboard.press("0")
    until(fill)


def test_points_from_the_left_camera_are_its_image(program, open_page):
    page = open_page(program.url)
    page.evaluate("document.querySelector('#alerts').style.display = 'none'")
    page.keyboard.press("4")
    pause(page)
    # Other views have bars of other heights.
    page.evaluate("""for (const name of ["header", "#foot"])
        document.querySelector(name).style.cssText = "height: 60px; flex: none; overflow: hidden";""")
    page.wait_for_timeout(300)
    left = screen(page)
    page.keyboard.press("3")
    aside = screen(page)
    assert "squares of 0." in page.locator("#grid").inner_text()
    same = lambda one: (np.abs(one - left).max(axis=2) < 30)[80:-80, 200:-200].mean()
    page.keyboard.press("3")
    until(lambda: same(screen(page)) > 0.8)
    assert same(aside) < 0.6
    # The colours of the depth come with their legend.
    assert not page.locator("#legend").is_visible()
    page.keyboard.press("d")
    assert page.locator("#legend").is_visible()
    coloured = screen(page)
    assert coloured.max(axis=2).mean() - coloured.min(axis=2).mean() > 60


def test_a_distance_is_measured(program, open_page):
    page = open_page(program.url)
    page.evaluate("document.querySelector('#alerts').style.display = 'none'")
    page.keyboard.press("2")
    header, disparity, confidence = pause(page)
    point = lambda column, row: (np.array([column - header["geometry"]["centre_x_px"], row - header["geometry"]["centre_y_px"],
                                           300]) * 0.12 / (disparity[row, column] / 16))
    known = [(column, row) for row in (60, 180) for column in range(60, 300, 7) if disparity[row, column] > 32 and confidence[row, column] > 1]
    ends = known[0], known[-1]
    distance = np.linalg.norm(point(*ends[0]) - point(*ends[1]))
    # The ends move along their rays, by the standard deviations of their depths.
    along = (point(*ends[1]) - point(*ends[0])) / distance
    deviations = texts(page, "hello")[0]["deviations_px"]
    def error(column, row):
        z = point(column, row)[2]
        return along @ point(column, row) / z * z * z / (300 * 0.12) * deviations[confidence[row, column]]
    label = f"{distance:.3f} ± {float(f'{np.hypot(*(error(*end) for end in ends)):.2g}'):g} m"
    page.click("#measure")
    for end in ends:
        point_at(page, *end, header)
        page.mouse.down()
        page.mouse.up()
    readout = page.locator("#readout")
    until(lambda: readout.inner_text().startswith(f"Distance {label} ("), what=f"{label} in {readout.inner_text()}")
    assert page.locator("#ruler line").count() == 1
    assert page.locator("#ruler text").text_content() == label
    # The same points in space, and others that are picked there.
    page.keyboard.press("3")
    assert page.locator("#ruler circle").count() == 2
    assert page.locator("#ruler text").text_content() == label
    line, words = page.locator("#ruler line").bounding_box(), page.locator("#ruler text").bounding_box()
    x, y = line["x"] + line["width"] / 2, line["y"] + line["height"] / 2
    assert words["x"] - 3 < x < words["x"] + words["width"] + 3 and abs(words["y"] - y) < 40
    box = page.locator("#canvas").bounding_box()
    for across in (0.4, 0.6):
        page.mouse.click(box["x"] + across * box["width"], box["y"] + 0.5 * box["height"])
    until(lambda: re.match(r"Distance [\d.]+ ", readout.inner_text()) and f"{distance:.3f}" not in readout.inner_text())
    page.keyboard.press("m")
    assert page.locator("#ruler circle").count() == 0


def test_the_right_image_comes_if_it_is_shown(program, open_page):
    page = open_page(program.url)
    pause(page)
    assert frames(page)[-1][0]["right"] == 0
    page.keyboard.press("4")
    left = screen(page)
    # Also during a pause.
    page.keyboard.press("7")
    until(lambda: frames(page)[-1][0]["right"] > 0)
    until(lambda: (np.abs(screen(page) - left).max(axis=2) > 20).mean() > 0.02)
    assert screen(page).std() > 10
    page.keyboard.press("2")
    page.click("#pause")
    until(lambda: frames(page)[-1][0]["right"] == 0)


def test_the_help_lists_the_keys(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("h")
    words = page.locator("#keys").inner_text()
    for key in ("l", "5", "Space", "arrows", "m", "w"):
        assert key in page.locator("#keys kbd").all_inner_texts(), key
    assert "mark begin" in words and "devices of this machine" not in words
    # Other elements in a list of descriptions confuse screen readers.
    assert page.locator("dl > :not(dt, dd)").count() == 0


def test_views_show_both_images(program, open_page):
    page = open_page(program.url)
    _, _, confidence = pause(page)
    images = {}
    for view, count in [("1", 2), ("2", 1), ("4", 1), ("5", 1), ("6", 1)]:
        page.keyboard.press(view)
        images[view], _ = saved_view(page)
        assert abs(images[view].shape[1] / (count * WIDTH) - 1) < 0.02
    assert np.array_equal(images["1"][:, :WIDTH], images["4"])
    assert np.array_equal(images["1"][:, -WIDTH:], images["2"])
    mixed = 0.45 * images["4"].astype(float) + 0.55 * images["2"]
    known = (images["2"] != texts(page, "knobs")[-1]["colours"][-1]).any(axis=2)
    assert np.abs(images["5"] - mixed)[known].max() <= 2
    assert np.array_equal(images["5"][~known], images["4"][~known])
    no_confidence = texts(page, "hello")[0]["no_confidence"]
    wanted = np.where(confidence[..., None] == 0, no_confidence, np.repeat(confidence[..., None], 3, axis=2))
    assert (confidence == 0).any() and np.array_equal(images["6"], wanted)
    legend = page.locator("#legend")
    assert legend.inner_text().split() == ["unsure", "sure", "unknown,", "filled", "0", "25", "50", "75", "100", "%"]
    shown = np.asarray(Image.open(io.BytesIO(legend.screenshot())).convert("RGB")).astype(int)
    assert (np.abs(shown - no_confidence).max(axis=2) == 0).sum() > 50
    # The scale is grey, from black to white.
    bar = [shown[8:14, int(part * shown.shape[1])].mean(axis=0) for part in (0.3, 0.5, 0.6)]
    assert all(np.ptp(colour) < 2 for colour in bar) and bar[0][0] < bar[1][0] < bar[2][0]


def test_a_checked_network_has_a_view(run, open_page, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "networks")
    import make

    make.write(tmp_path)
    # That of pip.
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    page = open_page(run("--engine", f"onnx:{tmp_path}/liar.onnx", "--check", "sgm").url)
    page.click('#views label:has([value="check"])')
    header, _, _ = pause(page)
    verdicts = page.evaluate("""async () => [...(await import("./page/state.js")).state.frame.verdicts]""")
    verdicts = np.reshape(verdicts, (HEIGHT, WIDTH))
    names, colours = zip(*texts(page, "hello")[0]["verdicts"])
    assert names == ("unknown", "agree", "only network", "only SGM", "contradict")
    view, name = saved_view(page)
    assert name.endswith("-check.png") and np.array_equal(view, np.array(colours, "u1")[verdicts])
    row, column = np.argwhere(verdicts == 1)[-1]
    point_at(page, column, row, header)
    until(lambda: "check: agree" in page.locator("#readout").inner_text())
    assert (np.abs(screen(page) - colours[1]).max(axis=2) <= 1).any()
    legend = page.locator("#legend")
    assert legend.get_attribute("aria-label") == "Colours: " + ", ".join(names[1:])
    assert page.locator("#ticks > *").all_inner_texts() == list(names[1:])
    shown = np.asarray(Image.open(io.BytesIO(legend.screenshot())).convert("RGB")).astype(int)
    counts = [(np.abs(shown - colour).max(axis=2) <= 2).sum() for colour in colours[1:]]
    assert min(counts) > 200 and max(counts) < 1.2 * min(counts), counts
    page.keyboard.press("i")
    until(lambda: re.search(r"[\d.]+ % agree, [\d.]+ % contradict", page.locator("#facts").inner_text()))


def test_flat_views_are_magnified(program, open_page):
    # A banner that comes or goes moves the canvas under the mouse.
    page = open_page(program.url)
    page.evaluate("document.querySelector('#alerts').style.display = 'none'")
    page.keyboard.press("2")
    header, _, _ = pause(page)
    readout = page.locator("#readout")
    found = lambda: [int(readout.get_attribute("data-" + k)) for k in ("column", "row", "raw")]
    point_at(page, 200, 60, header)
    until(lambda: found()[:2] == [200, 60])
    whole = screen(page)
    # The wheel keeps the place under the mouse; about the middle of the image, it would move by 50 rows.
    scale = lambda: float((re.search(r"([\d.]+) times", page.locator("#fit").text_content()) or [0, 1])[1])
    until(lambda: page.mouse.wheel(0, -240) or scale() > 8)
    box = page.locator("#canvas").bounding_box()
    x, y = place_of(page, 200, 60, header)
    page.mouse.move(box["x"] + x + 1, box["y"] + y)
    until(lambda: abs(found()[0] - 200) <= 12 and abs(found()[1] - 60) <= 12)
    before = found()[0]
    # Dragging moves the image with the pointer: at this scale a pixel is more than 20 wide.
    page.mouse.down()
    page.mouse.move(box["x"] + x - 200, box["y"] + y, steps=4)
    page.mouse.up()
    page.mouse.move(box["x"] + x + 1, box["y"] + y)
    until(lambda: 5 <= found()[0] - before <= 12)
    # A saved view is whole.
    assert saved_view(page)[0].shape == (HEIGHT, WIDTH, 3)
    page.keyboard.press("0")
    assert not page.locator("#fit").is_visible()
    page.mouse.move(box["x"] + x, box["y"] + y)
    until(lambda: (np.abs(screen(page) - whole).max(axis=2) > 20).mean() < 0.01)
    page.keyboard.press("+")
    until(lambda: page.locator("#fit").is_visible())


def test_full_screen_keeps_numbers_and_legend(program, open_page):
    page = open_page(program.url)
    page.click("#full")
    page.locator("#full[aria-pressed=true]").wait_for()
    assert page.locator("#readout").is_visible() and page.locator("#legend").is_visible()
    assert not page.evaluate("document.fullscreenElement.contains(document.querySelector('header'))")
    page.click("#full")
    page.locator("#full[aria-pressed=false]").wait_for()


def test_downloads_name_their_pair(program, open_page):
    page = open_page(program.url)
    header, disparity, _ = pause(page)
    stem = f"stereod-{header['seq']:06}-{header['time']:.3f}s-"
    names = {}
    for button in ("#png", "#depth", "#ply", "#toml", "#sheet"):
        page.click("#shoot")
        with page.expect_download() as download:
            page.click(button)
        names[button] = (download.value.suggested_filename, download.value.path())
    assert [names[b][0] for b in ("#png", "#depth", "#ply", "#sheet")] == [
        stem + "disparity.png", stem + "depth.png", stem + "cloud.ply", stem + "both.png"]
    assert names["#toml"][0] == "stereod.toml" and 'range = "fixed"' in names["#toml"][1].read_text()
    depth = np.asarray(Image.open(names["#depth"][1])).astype(int)
    near = disparity > 160
    assert np.abs(depth[near] - 1000 * 300 * 0.12 / (disparity[near] / 16)).max() <= 1
    sheet = Image.open(names["#sheet"][1])
    assert sheet.height == HEIGHT + 56 and sheet.width > 2 * WIDTH


def test_recordings_of_this_run_are_downloaded_with_the_token(run, open_page):
    program = run("--record", "out.mkv", "--segment", "2s")
    (program.folder / "out-other.mkv").write_bytes(b"not of this run")
    page = open_page(program.url)
    until(lambda: len(list(program.folder.glob("out*.mkv"))) > 2)
    page.get_by_role("button", name="Stop recording").click()
    page.get_by_role("button", name="Record", exact=True).wait_for()
    links = page.locator("#recordings a")
    def listed():
        page.keyboard.press("Escape")
        page.click("#shoot")
        page.wait_for_timeout(300)
        return links.count() > 1
    until(listed)
    assert not any("other" in words for words in links.all_inner_texts())
    with page.expect_download() as download:
        links.first.click()
    name = download.value.suggested_filename
    assert download.value.path().read_bytes() == (program.folder / name).read_bytes()
    address = links.first.get_attribute("href")
    assert page.request.get(address.split("?")[0]).status == 401
    assert page.request.get(f"{program.base}recordings/0/..%2Ftoken?token={program.token}").status == 404
    page.keyboard.press("Escape")


def test_keys_of_one_character_can_be_switched_off(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("h")
    page.uncheck("#letters")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("t")
    page.keyboard.press("Space")
    assert not page.locator("#tuning").is_visible() and not sent(page, "pause")
    page.locator("#canvas").focus()
    page.keyboard.press("t")
    assert page.locator("#tuning").is_visible()


@pytest.mark.parametrize("size", [(720, 450), (844, 390)])
def test_low_windows_leave_room_for_image_and_panel(program, open_page, size):
    width, height = size
    page = open_page(program.url, viewport={"width": width, "height": height})
    page.click("#tune")
    boxes = {name: page.locator(name).bounding_box() for name in ("#stage", "#tuning", "#side")}
    assert boxes["#stage"]["height"] > 0.4 * height and boxes["#stage"]["width"] > 0.5 * width
    assert boxes["#side"]["height"] > 0.6 * height
    small = page.evaluate("""[...document.querySelectorAll("header button, #views span")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.height && (box.height < 38 || box.right > innerWidth);
    }).map((e) => e.id || e.textContent)""")
    assert not small, small


def test_tuning_changes_the_run(run, open_page):
    # The recording of pictures fixes the number of disparities.
    program = run("--pictures", "out")
    page, other = open_page(program.url), open_page(program.base)
    page.keyboard.press("t")
    effect = page.locator("#effect")

    def reports(line):
        until(lambda: any("tuned: " in one and line in one for one in program.lines), what=line)
        until(lambda: effect.inner_text() == "in effect")

    field = knob(page, "matching.uniqueness").locator("input[type=text]")
    field.fill("40")
    field.press("Enter")
    reports("uniqueness = 40")
    until(lambda: value_of(page, "matching.uniqueness") == value_of(other, "matching.uniqueness") == "40")
    assert sent(page, "tune")[-1]["values"] == [["matching", "uniqueness", "40"]]

    field.fill("many")
    field.press("Enter")
    until(lambda: "many" in effect.inner_text() and "uniqueness" in effect.inner_text())
    assert field.input_value() == "many" and value_of(page, "matching.uniqueness") == "40"

    field.fill("41")
    field.press("Enter")
    reports("uniqueness = 41")
    assert knob(page, "matching.p1").locator("label").inner_text() == "smoothness of slants\np1"
    subpixel = knob(page, "matching.subpixel").locator("select")
    assert not subpixel.is_visible()
    unfold(page, "Checks")
    subpixel.select_option("parabola")
    reports('subpixel = "parabola"')
    # Another cost has other knobs; those that were unfolded stay so.
    cost = knob(page, "matching.cost").locator("select")
    for name, has_census in [("ad", 0), ("combined", 1)]:
        cost.select_option(name)
        reports(f'cost = "{name}"')
        until(lambda: knob(page, "matching.census_weight").count() == has_census)
        assert subpixel.is_visible()
    preset = knob(page, "matching.preset").locator("select")
    for name, least in [("accurate", "80"), ("balanced", "0")]:
        preset.select_option(name)
        reports(f'preset = "{name}"')
        until(lambda: value_of(page, "matching.min_confidence") == value_of(other, "matching.min_confidence") == least)
    # Values that no preset sets stay.
    assert value_of(page, "matching.uniqueness") == "41"
    slider = knob(page, "matching.min_confidence").locator("input[type=range]")
    slider.focus()
    slider.press("ArrowRight")
    reports("min_confidence = 1")
    knob(page, "matching.p2").locator(".word").click()
    until(lambda: value_of(page, "matching.p2").isdigit())
    numbers = [m["number"] for m in sent(page, "tune")]
    assert numbers == list(range(1, len(numbers) + 1))

    locked = knob(page, "matching.disparities")
    assert all(item.is_disabled() for item in locked.locator("input, button").all())
    assert "fixed: " in locked.inner_text()
    assert "Cannot change in this run" in locked.get_attribute("title")

    page.click("#save")
    file = program.folder / until(lambda: re.search(r"stereod-settings-\w+\.toml", page.locator("#note").inner_text()))[0]
    assert re.search(r"^uniqueness = 41", file.read_text(), re.M)
    page.click("#reset")
    until(lambda: field.input_value() == "8" and value_of(page, "matching.subpixel") == "corrected")
    page.locator("#canvas").focus()
    page.keyboard.press("c")
    until(lambda: value_of(page, "colour.map") == "viridis")
    page.keyboard.press("2")
    header, disparity, _ = pause(page)
    assert np.array_equal(saved_view(page)[0], colours_of(disparity, header, page))


def test_the_recording_is_switched(run, open_page):
    program = run("--pictures", "out")
    page = open_page(program.url)
    count = lambda: len(list((program.folder / "out").glob("*.png")))
    until(lambda: count() > 3)
    page.get_by_role("button", name="Stop recording").click()
    page.get_by_role("button", name="Record", exact=True).wait_for()
    until(lambda: not texts(page, "status")[-1]["recording"]["on"])
    # The pairs on their way are still written.
    before, first = settled_count(page, count), seq(page)
    until(lambda: seq(page) > first + 20)
    assert count() == before
    # One key asks; the second one within a few seconds acts.
    page.keyboard.press("r")
    assert "again" in page.locator("#note").inner_text() and not sent(page, "record")[1:]
    press_until(page, "r", lambda: sent(page, "record")[1:])
    until(lambda: count() > before)


def settled_count(page, count):
    """The number once it has stayed the same while twenty images came."""
    now, first = count(), seq(page)
    def same():
        nonlocal now, first
        if count() != now:
            now, first = count(), seq(page)
        return seq(page) > first + 20
    until(same)
    return now


def press_until(page, key, condition):
    """Presses a key that asks first, and acts the second time unless that comes too late."""
    until(lambda: condition() or page.keyboard.press(key))


def test_the_button_of_the_recording(program, open_page):
    page = open_page(program.url)
    button = page.locator("#record")
    alter = lambda recording: page.evaluate("(recording) => { window.altered.status = {recording}; }", recording)
    alter(None)
    until(lambda: not button.is_visible())
    page.keyboard.press("r")
    assert not sent(page, "record")
    alter({"on": True, "outputs": ["recording out.mkv"]})
    until(lambda: button.is_visible() and button.get_attribute("aria-pressed") == "true")
    assert button.inner_text() == "Stop recording" and "out.mkv" in button.get_attribute("title")
    dot = lambda: page.evaluate("getComputedStyle(document.querySelector('#record'), '::before').content")
    assert "\u25cf" in dot()
    button.click()
    assert sent(page, "record") == [{"type": "record", "on": False}]
    alter({"on": False, "outputs": ["recording out.mkv"]})
    until(lambda: button.get_attribute("aria-pressed") == "false")
    assert button.inner_text() == "Record" and dot() == "none"
    press_until(page, "r", lambda: sent(page, "record")[1:])
    assert sent(page, "record")[-1] == {"type": "record", "on": True}

    looker = open_page(program.base, script="window.altered.status = {recording: {on: true, outputs: ['x']}};")
    until(lambda: looker.locator("#record").is_visible())
    assert looker.locator("#record").is_disabled()
    looker.keyboard.press("r")
    assert not sent(looker, "record")
    assert "needs the token" in looker.locator("#note").inner_text()


def test_reconnects_after_a_restart(run, open_page):
    keep = "--set=serve.token_file=token"
    program = run(keep)
    token = (program.folder / "token").read_text().strip()
    page = open_page(program.base + "?token=" + token, allow=REFUSED)
    assert "token" not in page.url
    program.stop()
    until(lambda: "Connection lost" in page.locator("#state").inner_text())
    before = len(texts(page, "hello"))
    # With the same token the page goes on by itself.
    again = run(keep, port=program.port)
    until(lambda: page.locator("#state").inner_text() == "Live" and len(texts(page, "hello")) > before)
    page.reload()
    wait_for_frame(page)
    assert page.locator("#pause").is_visible()
    again.stop()
    # A new token is asked for.
    other = run(port=program.port)
    until(lambda: page.locator("#state").inner_text() == "Token refused")
    page.fill("#token", other.token)
    page.keyboard.press("Enter")
    until(lambda: page.locator("#state").inner_text() == "Live")


def test_two_clients(program, open_page):
    pages = [open_page(program.url) for _ in range(2)]
    marks = [seq(page) for page in pages]
    until(lambda: all(seq(page) > mark + 10 for page, mark in zip(pages, marks)))
    pages[0].click("#pause")
    pages[1].get_by_role("button", name="Resume").wait_for()
    shown = [settled(page) for page in pages]
    assert shown[0][0]["seq"] == shown[1][0]["seq"] and np.array_equal(shown[0][1], shown[1][1])


def test_a_wrong_token_is_explained(program, open_page):
    page = open_page(program.base + "?token=wrong", wait=False, allow=REFUSED)
    page.locator("#token").wait_for()
    assert page.locator("#state").inner_text() == "Token refused"
    assert "the token is missing or wrong" in page.locator("#message").inner_text()
    # The whole address, as it is copied from the terminal.
    page.fill("#token", f" {program.url} ")
    page.keyboard.press("Enter")
    wait_for_frame(page)
    assert not page.locator("#message").is_visible()


def test_other_origins_and_hosts_are_refused(program, open_page):
    page = open_page(program.url, allow=REFUSED)
    # A name that resolves to this machine (DNS rebinding).
    assert page.goto(f"http://evil.example:{program.port}/?token={program.token}").status == 421
    # A page of another origin that opens the WebSocket.
    stranger, logged = page.context.new_page(), []
    stranger.on("console", lambda message: logged.append(message.text))
    stranger.route("http://evil.example/", lambda route: route.fulfill(body="<title>evil</title>", content_type="text/html"))
    stranger.goto("http://evil.example/")
    for token in ("", "?token=" + program.token):
        heard = stranger.evaluate("""(url) => new Promise((done) => {
            const socket = new WebSocket(url);
            socket.onmessage = () => done("a message");
            socket.onclose = (event) => done(event.code);
        })""", f"ws://127.0.0.1:{program.port}/live{token}")
        assert heard == 1006 and "403" in logged[-1], (heard, logged)


def test_without_a_token_nothing_can_change(program, open_page):
    page = open_page(program.base)
    assert not page.locator("#pause").is_visible() and not page.locator("#tune").is_visible()
    for key in (" ", "t", "w", "c"):
        page.keyboard.press(key)
        assert "needs the token" in page.locator("#note").inner_text()
    assert not page.locator("#tuning").is_visible()
    before = seq(page)
    until(lambda: seq(page) > before + 10)
    assert {m["type"] for m in page.evaluate("window.spied.sent")} == {"quality", "ack", "clock"}
    assert not page.locator("#viewers-part").is_visible()


def test_status_names_each_loss(program, open_page):
    page = open_page(program.url, script="""window.altered.status = {rate: 29.94, unpaired: [1, 2], dropped: 3,
        latency_ms: {p50: 8.14, p95: 11.9}, banners: [{text: "left camera gone", trouble: true}],
        warnings: [{text: "too slow", count: 3, ago_s: 70}, {text: "torn", count: 1, ago_s: 9}],
        outputs: [{name: "depth.mkv", frames: 7, dropped: 4, failed: 0}], exposure: {text: "noise 2.1 2.3", alarm: true}};""")
    until(lambda: banners(page) == ["left camera gone", "torn"])
    assert page.locator("#about.warned").get_attribute("title") == "Status (i), warnings: 2"
    assert page.locator("#rate").inner_text() == "29.9 pairs/s"
    page.keyboard.press("i")
    facts = page.locator("#facts").inner_text()
    for words in ["1 left and 2 right frames without a partner", "3 pairs dropped", "depth.mkv: 4 dropped", "CPU",
                  "median 8.1 ms", "too slow (3 times), 70 s ago", "torn, 9 s ago"]:
        assert words in facts, words
    assert page.locator("#facts .alarm").all_inner_texts() == ["noise left 2.1, right 2.3", "torn, 9 s ago"]
    # Without the alterations: what the program says of the demo scene, unless the machine is too slow for it.
    page.evaluate("window.altered = {status: {warnings: [], late: 0}}")
    until(lambda: banners(page) == [])
    facts = page.locator("#facts").inner_text()
    assert "nothing" in facts and re.search(r"rows 0\.\d px", facts)


WARNINGS = ["only 12 % of the pixels have a disparity: check the range (`--disparities auto`) and the light",
            "the views show different moments: give `--offset -41`", "3 damaged frames", "the left camera is too bright"]
ALERTS = [{"text": text, "count": 1, "ago_s": 3 + at} for at, text in enumerate(WARNINGS)]


def alter(page, warnings):
    page.evaluate("(warnings) => { window.altered.status = {warnings}; }", warnings)


def test_warnings_are_one_line_that_opens(program, open_page):
    # What screen readers hear.
    page = open_page(program.url, script="""window.heard = [];
        addEventListener("DOMContentLoaded", () => new MutationObserver((changes) =>
            window.heard.push(...changes.map(({target}) => target.textContent)))
            .observe(document.querySelector("#news[role=status]"), {childList: true}));""")
    alter(page, ALERTS)
    until(lambda: banners(page) == WARNINGS)
    line, listed = page.locator("#alerts"), page.locator("#banners")
    counted = lambda: page.locator("#banners p.trouble").count()
    until(lambda: page.locator("#count").inner_text() == f"{counted()} warnings")
    assert line.bounding_box()["height"] < 40 and not listed.is_visible()
    line.focus()
    for key, opens in (("Enter", True), ("Space", False), ("Enter", True)):
        page.keyboard.press(key)
        assert listed.is_visible() == opens and line.get_attribute("aria-expanded") == str(opens).lower()
    page.keyboard.press("Escape")
    assert not listed.is_visible()
    line.click()
    # Screen readers hear of a new one, and not of numbers that change.
    heard = lambda: "\n".join(page.evaluate("window.heard"))
    assert all(text in heard() for text in WARNINGS)
    page.evaluate("window.heard.length = 0")
    alter(page, [*ALERTS[:2], {**ALERTS[2], "text": "4 damaged frames"}, ALERTS[3]])
    until(lambda: "4 damaged frames" in banners(page))
    alter(page, [{"text": "torn", "count": 1, "ago_s": 0}, *ALERTS])
    until(lambda: banners(page)[0] == "torn")
    until(lambda: "torn" in heard())
    assert not any(text in heard() for text in [*WARNINGS, "damaged"])
    # A setting of the panel that a message names is a step away.
    cure = listed.get_by_role("button")
    assert cure.all_inner_texts() == ["Tuning: number of disparities"]
    cure.click()
    assert page.locator("#tuning").is_visible()
    assert page.evaluate("document.activeElement.closest('.knob').dataset.name") == "matching.disparities"
    alter(page, [])
    until(lambda: banners(page) == [])


def test_a_warning_offers_only_settings_that_can_be_changed(run, open_page):
    # The recording of pictures fixes the number of disparities.
    program = run("--pictures", "out")
    for address in (program.url, program.base):
        page = open_page(address)
        alter(page, [{"text": "give --disparities 96, or --uniqueness 20", "count": 1, "ago_s": 1}])
        until(lambda: page.locator("#banners p").count())
        wanted = ["Tuning: uniqueness"] if address == program.url else []
        until(lambda: page.locator("#banners button").all_text_contents() == wanted)


def test_the_age_of_the_image_is_told_on_any_link(program, open_page):
    page = open_page(program.url)
    # The first status may be made before the first image.
    told = lambda of: [status["latency_ms"] for status in texts(of, "status") if status["latency_ms"]]
    latency = lambda of=page: until(lambda: told(of))[-1]["p50"] / 1000
    # It includes the time from capture to disparity.
    until(lambda: 0.5 * latency() < age(page) < latency() + 10)
    # A clock that is wrong by an hour changes nothing.
    wrong = open_page(program.url, script="const now = performance.now.bind(performance); performance.now = () => now() + 3.6e6;")
    until(lambda: 0.5 * latency() < age(wrong) < latency() + 10)
    wrong.close()
    full = page.evaluate("window.spied.frames.at(-1).byteLength")

    slow = link.SlowLink(program.port, 10_000_000)
    address = program.url.replace(f":{program.port}/", f":{slow.port}/")
    page = open_page(address, script="localStorage.setItem('stereod.size', 'auto');")
    scale = lambda: frames(page)[-1][0]["scale"]
    # An image of the full size then takes 6 s, one of half the width 1.5 s, whatever this machine draws in time.
    until(lambda: age(page) and scale() < 4)
    begun, slow.rate = time.monotonic(), full // 6
    until(lambda: age(page) > latency(page) + 1, 60)
    until(lambda: "s old: " in page.locator("#banners").inner_text(), 60)
    until(lambda: scale() == 4, 90)
    print(f"an image of a quarter of the width after {time.monotonic() - begun:.1f} s at {slow.rate} B/s")
    slow.rate = 10_000_000
    until(lambda: age(page) < latency(page) + 1, 60)


def test_a_paused_image_is_not_called_old(program, open_page):
    page = open_page(program.url)
    pause(page)
    page.wait_for_timeout(3000)
    assert "s old" not in page.locator("#banners").inner_text()


def test_viewers_are_listed_and_closed(program, open_page):
    page, other = open_page(program.url), open_page(program.base)
    page.keyboard.press("i")
    rows = page.locator("#viewers li")
    until(lambda: rows.count() == 2)
    until(lambda: "this page" in rows.nth(0).inner_text() and "without the token" in rows.nth(1).inner_text())
    page.get_by_role("button", name="Close viewer page 127.0.0.1").click()
    until(lambda: other.locator("#state").inner_text() == "Closed")
    assert "closed by another one. This page does not connect again" in other.locator("#banners").inner_text()
    until(lambda: rows.count() == 1)
    other.click("#retry")
    until(lambda: other.locator("#state").inner_text() == "Live" and not banners(other))


def test_the_end_of_a_recording_is_told(run, open_page):
    for count in (90, 900):
        program = run("--set=window.at_end=close", frames=count)
        try:
            page = open_page(program.url, allow=REFUSED)
            break
        except (Error, pytest.fail.Exception):  # On a slow machine three seconds are over before the page is there.
            pass
    until(lambda: page.locator("#state").inner_text() == "Ended", 120)
    words = f"The run has ended after {count} pairs. This page does not connect again by itself."
    until(lambda: banners(page) == [words])
    assert page.locator("#retry").is_visible() and program.process.wait(60) == 0
    connections = lambda: page.evaluate("window.opened")
    before = connections()
    page.wait_for_timeout(3000)
    assert connections() == before and screen(page).std() > 10


def at_end(page):
    until(lambda: page.locator("#state").inner_text() == "At the end")


def shows(page, number):
    until(lambda: seq(page) == number, what=f"pair {number}")


def test_a_recording_is_moved_through_and_played_again(run, open_page):
    program = run(frames=90)
    page, looker = open_page(program.url), open_page(program.base)
    at_end(page)
    assert program.process.poll() is None and any("is at its end" in line for line in program.lines)
    shows(page, 89)
    slider = page.locator("#place")
    assert abs(float(slider.input_value()) - 89 / 30) < 0.01 and float(slider.get_attribute("max")) == 3
    assert page.get_by_role("slider", name="Time in the recording").get_attribute("aria-valuetext") == "3.0 of 3.0 seconds, pair 89"
    for key, number in [("Home", 0), (",", 0), (".", 1), (".", 2), (",", 1), ("End", 89)]:
        page.keyboard.press(key)
        shows(page, number)
        shows(looker, number)
    for name, number in [("Pair before", 88), ("Next pair", 89)]:
        page.get_by_role("button", name=name).click()
        shows(page, number)
    # By pointer and by the slider's own keys.
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(lambda: abs(seq(page) - 45) < 3)
    slider.press("Home")
    shows(page, 0)
    slider.press("ArrowRight")
    until(lambda: 0 < seq(page) < 10)
    # A part of three pairs repeats.
    page.keyboard.press("Home")
    shows(page, 0)
    page.keyboard.press("[")
    until(lambda: "marked: --start 0.000" in page.locator("#note").inner_text())
    for number in (1, 2):
        page.keyboard.press(".")
        shows(page, number)
    page.get_by_role("button", name="Mark end").click()
    until(lambda: "--duration 0.083" in page.locator("#note").inner_text())
    page.keyboard.press("a")
    page.select_option("#speed", "0.25")
    until(lambda: page.locator("#repeat").get_attribute("aria-pressed") == "true")
    page.get_by_role("button", name="Play again").or_(page.get_by_role("button", name="Resume")).click()
    for number in (2, 0, 2, 0):
        shows(looker, number)
    # The timeline is told apart from the images.
    looker.locator("#part").wait_for()
    for mark in ("Mark begin", "Mark end"):
        assert page.get_by_role("button", name=mark).get_attribute("aria-pressed") == "true"

    # Without the token the timeline is there to look at.
    controls = looker.locator("#timeline button, #timeline input, #timeline select")
    assert controls.count() == 7 and all(control.is_disabled() for control in controls.all())
    for key in (".", "Home", "a", "[", ">"):
        looker.keyboard.press(key)
        until(lambda: "needs the token" in looker.locator("#note").inner_text())
    assert not any(sent(looker, kind) for kind in ("move", "mark", "play"))


def test_without_a_timeline_its_keys_say_why(run, open_page):
    page = open_page(run("--pictures", "out").url)
    assert not page.locator("#timeline").is_visible()
    page.keyboard.press("Home")
    assert "The timeline is off while frames are written" in page.locator("#note").inner_text()
    assert not sent(page, "move")


def test_a_recording_gets_its_name(run, open_page):
    program = run("--record", "out.mkv", "--on-demand")
    page = open_page(program.url)
    page.get_by_role("button", name="Record", exact=True).click()
    until(lambda: re.fullmatch(r"[\d.]+ [MG]B free", page.locator("#room").inner_text()))
    name = page.get_by_label("Name of the files")
    for wrong, why in [("../yard", "names a folder"), (".yard", "begins with a dot")]:
        if not name.is_visible():
            page.click("#record")
        name.fill(wrong)
        page.get_by_role("button", name="Start recording").click()
        until(lambda: why in page.locator("#note").inner_text())
    # What was wrong is there to be corrected.
    page.click("#record")
    assert name.input_value() == ".yard"
    name.fill("yard")
    name.press("Enter")
    until(lambda: (program.folder / "yard.mkv").exists())
    page.get_by_role("button", name="Stop recording").click()
    page.get_by_role("button", name="Record", exact=True).wait_for()
    page.click("#record")
    assert name.input_value() == ""
    page.keyboard.press("Escape")
    assert not name.is_visible() and not (program.folder / "out.mkv").exists()
    page.click("#shoot")
    until(lambda: [words for words in page.locator("#recordings a").all_inner_texts() if "yard.mkv" in words])


@pytest.mark.parametrize("proxy", [link.nginx, link.caddy])
def test_a_proxy_of_the_documentation_works_on_any_port(run, open_page, tmp_path, proxy):
    if not shutil.which(proxy.__name__):
        pytest.skip(f"{proxy.__name__} is missing")
    program = run("--set=serve.require_token=true", "--set=metrics.hosts=rig.example", "--focal", "300", "--baseline", "0.12")
    port = link.free_port()
    process = subprocess.Popen(proxy(tmp_path, "rig.example", port, program.port), stdout=subprocess.DEVNULL,
                               stderr=(tmp_path / "proxy.log").open("w"), env={**os.environ, "HOME": str(tmp_path)})
    try:
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, what="the proxy: " + (tmp_path / "proxy.log").read_text())
        base = f"https://rig.example:{port}/"
        # Without the token nobody sees the cameras, although the proxy is on this machine.
        page = open_page(base, wait=False, allow=REFUSED)
        page.locator("#token").wait_for()
        assert page.evaluate("fetch('snapshot/disparity.png').then((answer) => answer.status)") == 401
        page.fill("#token", program.token)
        page.keyboard.press("Enter")
        wait_for_frame(page)
        page.click("#shoot")
        with page.expect_download() as download:
            page.click("#ply")
        assert download.value.path().read_bytes().startswith(b"ply\n")
        # Another page cannot use the proxy either.
        stranger = page.context.new_page()
        stranger.route("https://evil.example/", lambda route: route.fulfill(body="<title>evil</title>", content_type="text/html"))
        stranger.goto("https://evil.example/")
        heard = stranger.evaluate("""(url) => new Promise((done) => {
            const socket = new WebSocket(url);
            socket.onmessage = () => done("a message");
            socket.onclose = (event) => done(event.code);
        })""", f"wss://rig.example:{port}/live?token={program.token}")
        assert heard == 1006
    finally:
        process.terminate()
        process.wait(60)


def test_a_page_of_another_site_cannot_show_a_snapshot(program, open_page):
    page = open_page(program.url, allow=REFUSED)
    stranger = page.context.new_page()
    stranger.route("http://evil.example/", lambda route: route.fulfill(body="<title>evil</title>", content_type="text/html"))
    stranger.goto("http://evil.example/")
    statuses = []
    stranger.on("response", lambda response: statuses.append(response.status))
    loaded = stranger.evaluate("""(url) => new Promise((done) => {
        const image = new Image();
        image.onload = () => done(true);
        image.onerror = () => done(false);
        image.src = url;
    })""", f"{program.base}snapshot/disparity.png")
    assert not loaded and 200 not in statuses, statuses


def test_half_size(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("i")
    page.select_option("#size", "half")
    header, disparity, _ = until(lambda: next((f for f in frames(page) if f[0]["scale"] == 2), None))
    assert disparity.shape == (header["height"], header["width"]) == (HEIGHT // 2, WIDTH // 2)
    until(lambda: "160x120" in page.locator("#facts").inner_text())
    page.keyboard.press("2")
    header, disparity, _ = pause(page)
    point_at(page, 117, 12, header)
    readout = page.locator("#readout")
    assert int(readout.get_attribute("data-raw")) == disparity[12, 117]
    assert "x 234 y 24" in " ".join(readout.inner_text().split())


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_phone_has_no_sideways_scrolling(program, open_page, scheme):
    page = open_page(program.url, color_scheme=scheme, **PHONE, script="""window.altered.status = {
        recording: {on: true, outputs: []}, banners: [{text: "a long message ".repeat(8) + "x".repeat(80), trouble: true}]};""")

    def fits():
        assert page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [390, 390]
        over = page.evaluate("""[...document.querySelectorAll("body *")].filter((e) => {
            const box = e.getBoundingClientRect();
            return box.width > 1 && box.right > 391 && getComputedStyle(e).visibility === "visible";
        }).map((e) => e.id || e.className || e.tagName)""")
        assert not over, over
    page.locator("#worst", has_text="a long message").wait_for()
    page.locator("#record").wait_for()
    fits()
    for opener in ("#alerts", "#tune", "#about", "#shoot", "#ask"):
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


@pytest.mark.parametrize("size", [(390, 844), (360, 640)])
def test_a_phone_keeps_half_of_its_height_for_the_image(run, open_page, size):
    program = run(*OBSTACLES, "--set=obstacles.find=true")
    phone = {**PHONE, "viewport": {"width": size[0], "height": size[1]}}
    altered = json.dumps({"warnings": ALERTS, "recording": {"on": True, "outputs": []}})
    page = open_page(program.url, **phone, script=f"""window.altered.status = {altered};
        window.altered.hello = {{rigs: ["front", "rear"], rig: 0}};""")
    until(lambda: page.locator("#alerts").is_visible())

    def fits(*opened):
        boxes = page.evaluate("""() => Object.fromEntries(["header", "#alerts", "#banners", "#stage", "#foot", "#side"]
            .map((name) => [name, document.querySelector(name).getBoundingClientRect()])
            .filter(([, box]) => box.height).map(([name, box]) => [name, [box.top, box.bottom]]))""")
        assert set(opened) <= set(boxes)
        top, bottom = boxes["#stage"]
        assert bottom - top >= size[1] / 2 and page.evaluate("document.body.scrollHeight") <= size[1], boxes
        # One below the other, with room for what was opened.
        parts = sorted(boxes.values())
        assert all(above[1] <= below[0] + 0.5 for above, below in zip(parts, parts[1:])), boxes
        assert all(boxes[name][1] - boxes[name][0] > 55 for name in opened), boxes
        # What does not fit is scrolled to, and lies over nothing else.
        over = page.evaluate("""() => ["#foot", "#side"].flatMap((name) => {
            const box = document.querySelector(name).getBoundingClientRect();
            const seen = [...document.querySelectorAll(`:is(${name}) :is(button, #ticks span, output, input, select)`)]
                .filter((one) => one.checkVisibility()).map((one) => [one, one.getBoundingClientRect()]);
            return seen.filter(([one, a]) => seen.some(([other, b]) => one !== other && !one.contains(other) && !other.contains(one)
                && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1))
                .map(([one]) => one.id || one.textContent);
        })""")
        assert not over, over
    fits("#foot")
    page.tap("#alerts")
    fits("#banners")
    # A list and a panel have no room together.
    page.tap("#tune")
    fits("#side")
    assert not page.locator("#banners").is_visible()
    page.tap("#alerts")
    fits("#banners")
    assert not page.locator("#side").is_visible()
    page.tap("#tune")
    page.tap("#draw")
    fits("#side")
    page.tap("#about")
    fits("#side")
    page.tap("#about")
    page.tap('#views label:has([value="points"])')
    page.locator("#depth-colours").tap()
    fits("#foot")


def test_forced_colours_keep_those_of_the_legend(program, open_page):
    page = open_page(program.url, forced_colors="active")
    page.keyboard.press("2")
    header, _, _ = pause(page)
    point_at(page, 160, 120, header)
    assert page.evaluate("matchMedia('(forced-colors: active)').matches")
    colours = texts(page, "knobs")[-1]["colours"]
    legend = np.asarray(Image.open(io.BytesIO(page.locator("#legend").screenshot())).convert("RGB")).astype(int)
    count = lambda colour: (np.abs(legend - colour).max(axis=2) <= 2).sum()
    assert count(colours[-1]) > 50 and all(count(colours[at]) > 3 for at in (40, 128, 200))
    # The probe's cross is white with a dark edge.
    cross = page.locator(".cross").first.screenshot()
    parts = np.asarray(Image.open(io.BytesIO(cross)).convert("RGB")).astype(int)
    assert (parts.min(axis=2) > 250).sum() > 20


def test_the_keyboard_alone_reaches_everything(program, open_page):
    page = open_page(program.url)
    page.keyboard.press("5")
    page.keyboard.press("t")
    page.evaluate("document.activeElement.blur()")
    wanted = set(page.evaluate("""[...document.querySelectorAll("button, input, select, summary, a[href], canvas[tabindex]")]
        .filter((e) => !e.disabled && e.checkVisibility() && e.getClientRects().length && (e.type !== "radio" || e.checked))
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
    assert page.locator('#views input[value="confidence"]').is_checked()
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
    until(lambda: texts(page, "status")[-1]["paused"])
    names = page.evaluate("""[...document.querySelectorAll("button, input, select, a[href]")].filter((e) =>
        !(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length) || e.tagName === "SELECT")).length""")
    assert names == 0


def test_frames_are_acknowledged_in_order_when_drawn(program, open_page):
    page = open_page(program.url)
    until(lambda: len(sent(page, "ack")) > 20)
    acks = [m["seq"] for m in sent(page, "ack")]
    assert acks == sorted(set(acks))


def test_stalled_clients_cost_only_their_own_frames(program, open_page):
    page = open_page(program.url)
    until(lambda: sent(page, "ack"))

    def stalled():
        """A connection that reads nothing after the handshake."""
        client = socket.create_connection(("127.0.0.1", program.port))
        client.sendall(f"GET /live?token={program.token} HTTP/1.1\r\nHost: 127.0.0.1:{program.port}\r\n"
                       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
        assert client.recv(12) == b"HTTP/1.1 101"
        return client

    clients = [stalled() for _ in range(3)]
    page.wait_for_timeout(1000)
    memory = program.memory()
    page.wait_for_timeout(1000 * STALL_S)
    full = len(sent(page, "ack"))
    until(lambda: len(sent(page, "ack")) > full + 20)
    grown = program.memory() - memory
    print(f"{grown:+.1f} MiB next to 3 stalled clients for {STALL_S:.0f} s")
    assert grown < 8
    for client in clients:
        client.close()


def test_the_policy_is_sent(program):
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)
    connection.request("GET", "/")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
