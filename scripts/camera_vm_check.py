#!/usr/bin/env python3
"""Checks the results of camera_vm_guest.sh in a folder: usage: camera_vm_check.py FOLDER CASE...
Prints one line per error; exit status 1 if there is any."""

import json
import re
import sys
from pathlib import Path

folder, cases = Path(sys.argv[1]), sys.argv[2:]
faults = []


def text(name, kind):
    file = folder / f"{name}.{kind}"
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def expect(name, what, true):
    if ran(name) and not true:
        faults.append(f"{name}: not {what}\n    out: {text(name, 'out')[-400:]}\n    log: {text(name, 'log')[-800:]}")


def ran(name):
    """Reports whether a run ended; if not, this is its only error, listed once."""
    ended = (folder / f"{name}.rc").exists()
    fault = f"{name}: did not come to its end\n    log: {text(name, 'log')[-800:]}"
    if not ended and fault not in faults:
        faults.append(fault)
    return ended


def says(name, kind, *parts, status=None):
    for part in parts:
        expect(name, f"'{part}' in its {kind}", part in text(name, kind))
    if status is not None:
        expect(name, f"exit status {status}", text(name, "rc").strip() == str(status))


def played(name, pairs, *log):
    """Checks that a run ended well with `pairs` pairs, and returns its statistics."""
    says(name, "log", *log, status=0)
    try:
        stats = json.loads(text(name, "out"))
    except ValueError:
        expect(name, "statistics", False)
        return {}
    expect(name, f"{pairs} pairs but {stats['pairs']}", stats["pairs"] == pairs)
    unpaired = stats["unpaired"]["left"] + stats["unpaired"]["right"]
    # The number of unpaired frames depends on the load of the host: printed, not checked.
    line = f"{name}: {stats['pairs']} pairs, {unpaired} unpaired, {stats['dropped']} dropped, {stats['fps']:.1f}/s"
    print(line, (stats.get("alignment") or {}).get("verdict", ""))
    return stats


def controls_agree(listed, stated):
    """Checks the controls of a camera in the JSON of `stereod devices` against those that v4l2-ctl lists."""
    line = re.compile(r"\s*\w+ (0x[0-9a-f]+) \((int|bool|menu|intmenu)\)\s*: (.*)")
    flags = {"inactive": "inactive", "read-only": "read_only", "grabbed": "read_only"}
    count = 0
    for found in filter(None, map(line.match, text(listed, "out").splitlines())):
        number, kind, rest = found.groups()
        fields = dict(field.split("=", 1) for field in rest.split(" (")[0].split() if "=" in field)
        is_set = rest.partition("flags=")[2]
        if "write-only" in is_set:
            continue
        control = next((one for one in stated if one["id"] == int(number, 16)), None)
        expect(listed, f"control {number} in JSON", control)
        if not control:
            continue
        count += 1
        for key in ["min", "max", "step", "default"]:
            if key in fields:
                expect(listed, f"{key} of {number}", control[key] == int(fields[key]))
        # Volatile values change from one reading to the next.
        if "volatile" not in is_set:
            expect(listed, f"value of {number}", control["value"] == int(fields["value"]))
        for flag in ["inactive", "read_only"]:
            given = any(word in is_set for word, meaning in flags.items() if meaning == flag)
            expect(listed, f"{flag} of {number}", control[flag] == given)
    print(f"{listed}: {count} controls")
    expect(listed, "controls", count > 0)


def adjusted(name):
    """Checks the run of the unit test that sets controls, if there was one."""
    if (folder / f"{name}.rc").exists():
        says(name, "out", "controls set", status=0)
        print("\n".join(line for line in text(name, "out").splitlines() if "controls set" in line))


if "list" in cases:
    adjusted("adjusted_usb")
    controls_agree("listed_controls", (json.loads(text("devices_json", "out") or "{}").get("cameras") or [{}])[0].get("controls", []))
    says("devices_controls", "out", "; default ", status=0)
    says("none", "out", "No cameras. Plug one in", status=0)
    says("devices", "out", "/dev/v4l/by-path/", "CamLeft", "CamRight", "serial number L001", "Mbit/s", status=0)
    says("devices", "out", "MJPG  640x480 at 30, 15", "GREY  640x480 at 30, 15", "YUYV  640x480")
    expect("devices", "without look-alikes", "looks like" not in text("devices", "out"))
    expect("devices", "without 'busy'", "busy" not in text("devices", "out"))
    cameras = json.loads(text("devices_json", "out") or "{}").get("cameras", [])
    expect("devices_json", "two cameras", len(cameras) == 2)
    for camera in cameras:
        expect("devices_json", "by-path and by-id names", camera["by_path"] and camera["by_id"])
        expect("devices_json", "six modes", len(camera["modes"]) == 6)

if "formats" in cases:
    played("auto", 15, "GREY 640x480 at 30/s (the largest size up to 1280x720 that both cameras offer")
    for code in ["grey", "yuyv", "mjpg"]:
        played(f"{code}_320x240", 60, f"{code.upper()} 320x240 at 30/s")
        played(f"{code}_640x480", 15, f"{code.upper()} 640x480 at 15/s")

if "swap" in cases:
    swap, straight = (played(name, 150) for name in ["swap", "unswapped"])
    expect("swap", "seen as exchanged", swap.get("alignment", {}).get("verdict") == "swapped")
    expect("unswapped", "seen as straight", straight.get("alignment", {}).get("verdict") in ["good", "rows-off", "unsure"])

if "refusals" in cases:
    says("missing", "log", "/dev/video77: no camera there", "`stereod devices`", status=1)
    says("same", "log", "are one camera", status=1)
    says("metadata", "log", "carries no pictures", status=1)
    says("unoffered", "log", "does not offer 800x600; it offers 320x240, 640x480", status=1)
    says("busy_devices", "out", "busy: in use by v4l2-ctl (process ", status=0)
    says("busy", "log", "in use by v4l2-ctl (process ", "end that program", status=1)
    says("forbidden", "log", "usermod -aG video", status=1)

if "calibrated" in cases:
    stats = played("calibrated", 6, "GREY 752x480 at 10/s")
    expect("calibrated", "seen as aligned", stats.get("alignment", {}).get("verdict") == "good")

if "late" in cases:
    played("late", 30, "no camera there", "waiting for it", "it is there after")

if "twins" in cases:
    says("twins", "out", "looks like /dev/video", "serial number SAME", status=0)
    played("twins_run", 60, "GREY 320x240")

if "halves" in cases:
    halves = played("halves", 60, "GREY 640x240 at 30/s")
    expect("halves", "320x240 an eye", (halves.get("width"), halves.get("height")) == (320, 240))
    played("halves_size", 30, "MJPG 640x240 at 30/s")

if "vivid" in cases:
    adjusted("adjusted_vivid")
    for camera in json.loads(text("vivid_json", "out") or "{}").get("cameras", [])[:1]:
        controls_agree("vivid_listed", camera["controls"])
    says("vivid_devices", "out", "vivid", "NV12", status=0)
    for code in ["nv12", "uyvy"]:
        played(f"vivid_{code}", 20, f"{code.upper()} 320x180 at 25/s")
    played("vivid_controls", 20, "its gain cannot be 100000", "its focus cannot be set")
    says("vivid_gain", "out", "gain: 77")
    played("vivid_follow", 200)
    says("vivid_followed", "out", "gain: 99", "gain_automatic: 0")

print("\n".join(faults) if faults else "cameras: all as expected")
sys.exit(1 if faults else 0)
