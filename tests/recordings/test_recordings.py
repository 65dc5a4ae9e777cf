"""The same pairs from a recording and from images give the same disparities."""

import base64
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import zstandard
from conftest import (BASELINE, EUROC, FOCAL, OAKD, RECORDERS, ROS2, SERIAL, VIEWS, camera_infos, encode, euroc,
                      euroc_infos, foxglove_images, foxglove_video, image_video, maps, messages_of, mono, packet_video,
                      png, ros_video, same, stamp_of, stereod, svo2, write_pngs)
from mcap.reader import make_reader
from mcap.writer import Writer as PlainWriter
from PIL import Image
from rosbags.highlevel import AnyReader

KINDS = list(RECORDERS)


def record(kind, folder, pairs, infos=None, name="image_rect", encode=mono, compressed=False):
    return RECORDERS[kind](folder, messages_of(pairs, infos, name, encode, compressed))


@pytest.mark.parametrize("kind", KINDS)
def test_disparities_are_those_of_the_images(kind, tmp_path, pairs, plain):
    path = record(kind, tmp_path, pairs)
    before = sorted(path.parent.rglob("*"))
    found, log = maps(tmp_path, path)
    same(found, plain)
    assert "cut" not in log and "unfinished" not in log
    shutil.rmtree(tmp_path / "out")
    assert sorted(path.parent.rglob("*")) == before


@pytest.mark.parametrize("kind", KINDS)
def test_what_info_says(kind, tmp_path, pairs):
    path = record(kind, tmp_path, pairs, camera_infos((192, 120)))
    said = json.loads(stereod("info", path, "--json", folder=tmp_path)[0])
    topics = {topic["name"]: topic for topic in said["topics"]}
    image = topics["/left/image_rect"]
    assert (image["messages"], image["kind"]) == (len(pairs), "sensor_msgs/Image")
    assert image["image"] == {"width": 192, "height": 120, "format": "mono8"}
    assert image["rate"] == pytest.approx(20) and image["gaps"] == 0
    pair = said["pair"]
    assert (pair["left"], pair["right"]) == ("/left/image_rect", "/right/image_rect")
    assert pair["pairs"] == len(pairs) and pair["skew_ms"] == pytest.approx(0.04)
    assert pair["camera_infos"] == ["/left/camera_info", "/right/camera_info"]
    assert said["cut"] is None
    text, _ = stereod("info", path, folder=tmp_path)
    assert "20.00/s" in text and "192x120 mono8" in text and "/right/camera_info" in text


@pytest.mark.parametrize("kind", ["bag", "db3", "mcap-zstd"])
def test_compressed_images(kind, tmp_path, pairs, plain):
    same(maps(tmp_path, record(kind, tmp_path, pairs, compressed=True))[0], plain)


@pytest.mark.parametrize("kind", ["bag", "mcap-zstd"])
def test_the_calibration_of_the_recording_gives_depth(kind, tmp_path, pairs, plain):
    path = record(kind, tmp_path, pairs, camera_infos((192, 120)))
    found, log = maps(tmp_path, path, "--depth")
    assert "/left/camera_info and /right/camera_info" in log and "come rectified" in log
    for name, depth in found.items():
        disparity = plain[name] / 256
        known = disparity > 0
        assert known.mean() > 0.5
        expected = 1000 * FOCAL * BASELINE / disparity[known]
        near = expected < 60_000
        assert np.abs(depth[known][near] - expected[near]).max() <= 1 + 1e-3 * expected[near].max()


FORMATS = {
    "mono8, padded": lambda p: ("mono8", np.pad(p, ((0, 0), (0, 8))).reshape(-1), p.shape[1] + 8),
    "rgb8": lambda p: ("rgb8", np.repeat(p, 3), 3 * p.shape[1]),
    "bgr8": lambda p: ("bgr8", np.repeat(p, 3), 3 * p.shape[1]),
    "bgra8": lambda p: ("bgra8", np.dstack([p, p, p, np.full_like(p, 255)]).reshape(-1), 4 * p.shape[1]),
    "yuv422": lambda p: ("yuv422", np.dstack([np.full_like(p, 128), p]).reshape(-1), 2 * p.shape[1]),
    "nv12": lambda p: ("nv12", np.append(p, np.full(p.size // 2, 128, np.uint8)), p.shape[1]),
    "nv21": lambda p: ("nv21", np.append(p, np.full(p.size // 2, 128, np.uint8)), p.shape[1]),
    "nv24": lambda p: ("nv24", np.append(p, np.full(p.size * 2, 128, np.uint8)), p.shape[1]),
    "yuv422_yuy2": lambda p: ("yuv422_yuy2", np.dstack([p, np.full_like(p, 128)]).reshape(-1), 2 * p.shape[1]),
}


@pytest.mark.parametrize("encode", FORMATS.values(), ids=FORMATS)
def test_pixel_formats(encode, tmp_path, pairs, plain):
    same(maps(tmp_path, record("mcap", tmp_path, pairs, encode=encode))[0], plain)


@pytest.mark.parametrize("kind", ["bag", "mcap"])
def test_a_mosaic_in_compressed_images(kind, tmp_path, pairs, plain):
    """image_transport names the mosaic in the format, and writes it as a grey file."""
    mosaic = lambda p: ("bayer_rggb8", np.ascontiguousarray(p).reshape(-1), p.shape[1])
    expected, _ = maps(tmp_path, record(kind, tmp_path, pairs, encode=mosaic))
    (tmp_path / "drive.bag").unlink(missing_ok=True)
    found, _ = maps(tmp_path, record(kind, tmp_path, pairs, compressed="bayer_rggb8; png compressed "))
    same(found, expected)
    assert any(not np.array_equal(found[name], plain[name]) for name in found)


@pytest.mark.parametrize("compressed", [False, True])
def test_images_and_calibrations_of_foxglove(compressed, tmp_path, pairs, plain):
    foxglove_images(tmp_path / "drive.mcap", pairs, camera_infos((192, 120)), compressed)
    found, log = maps(tmp_path, "drive.mcap")
    same(found, plain)
    assert f"focal length {FOCAL:.1f} px, baseline {1e3 * BASELINE:.1f} mm" in log


def test_types_of_omg_idl(tmp_path, pairs, plain):
    writer = PlainWriter(str(tmp_path / "drive.mcap"))
    writer.start(profile="", library="test")
    schema = writer.register_schema("sensor_msgs::msg::Image", "omgidl", b"module sensor_msgs {};")
    channels = {}
    for topic, kind, log, fields in messages_of(pairs, None, "image_rect", mono, False):
        channel = channels.get(topic) or writer.register_channel(topic, "cdr", schema)
        channels[topic] = channel
        data = ROS2.store.serialize_cdr(ROS2.make(kind, fields), f"sensor_msgs/msg/{kind}")
        writer.add_message(channel, log, bytes(data), log)
    writer.finish()
    same(maps(tmp_path, "drive.mcap")[0], plain)


def test_images_in_json_are_refused_and_converted(tmp_path, pairs, plain, monkeypatch):
    writer = PlainWriter(str(tmp_path / "json.mcap"))
    writer.start(profile="", library="test")
    schema = writer.register_schema("foxglove.CompressedImage", "jsonschema", b'{"type": "object"}')
    channels = [writer.register_channel(f"/{view}/image_rect", "json", schema) for view in VIEWS]
    for number, pair in enumerate(pairs):
        for eye, channel in enumerate(channels):
            stamp = stamp_of(number, eye)
            image = {"timestamp": {"sec": stamp // 10**9, "nsec": stamp % 10**9}, "frame_id": "eye", "format": "png",
                     "data": base64.b64encode(png(pair[eye]).tobytes()).decode()}
            writer.add_message(channel, stamp, json.dumps(image).encode(), stamp)
    writer.finish()
    _, log = stereod("run", "json.mcap", "--headless", folder=tmp_path, status=1)
    assert "/left/image_rect (foxglove.CompressedImage, json" in log and "docs/recordings.md" in log
    # As the page describes it.
    page = (Path(__file__).resolve().parents[2] / "docs" / "recordings.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "recordings.md", "exec"), {})
    same(maps(tmp_path, "cdr.mcap")[0], plain)


def test_sixteen_bits(tmp_path, pairs):
    deep = [tuple(view.astype(np.uint16) * 200 for view in pair) for pair in pairs]
    write_pngs(tmp_path, deep)
    expected, _ = maps(tmp_path, "--left", tmp_path / "left/%06d.png", "--right", tmp_path / "right/%06d.png")
    encode = lambda p: ("mono16", p.astype("<u2").view(np.uint8).reshape(-1), 2 * p.shape[1])
    same(maps(tmp_path, record("mcap", tmp_path, deep, encode=encode))[0], expected)


@pytest.mark.parametrize("kind", ["bag", "mcap", "db3"])
def test_topics_written_one_after_the_other(kind, tmp_path, pairs, plain):
    messages = list(messages_of(pairs, None, "image_rect", mono, False))
    path = RECORDERS[kind](tmp_path, sorted(messages, key=lambda message: (message[0], message[2])))
    same(maps(tmp_path, path)[0], plain)


@pytest.mark.parametrize("kind", ["bag", "mcap-zstd", "mcap", "db3"])
def test_a_recording_that_was_cut_off(kind, tmp_path, pairs, plain):
    path = record(kind, tmp_path, pairs)
    file = path if path.is_file() else next(path.glob("*.db3"))
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 7 // 10])
    found, log = maps(tmp_path, path)
    assert 1 <= len(found) < len(pairs)
    same(found, {name: image for name, image in plain.items() if name in found})
    assert "last whole message" in log
    said = json.loads(stereod("info", path, "--json", folder=tmp_path)[0])
    assert said["cut"]
    # Nearly nothing is left.
    file.write_bytes(content[:60])
    _, log = stereod("run", path, "--headless", folder=tmp_path, status=1)
    assert "panicked" not in log


@pytest.mark.parametrize("kind", ["mcap", "mcap-zstd", "mcap-lz4"])
def test_a_damaged_chunk_is_left_out(kind, tmp_path, pairs, plain):
    path = record(kind, tmp_path, pairs)
    with path.open("rb") as file:
        chunk = make_reader(file).get_summary().chunk_indexes[1]
    content = bytearray(path.read_bytes())
    middle = chunk.chunk_start_offset + chunk.chunk_length // 2
    content[middle : middle + 200] = bytes(byte ^ 0x55 for byte in content[middle : middle + 200])
    path.write_bytes(content)
    # The reader of MCAP's own library refuses it.
    with pytest.raises((ValueError, RuntimeError, zstandard.ZstdError)), path.open("rb") as file:
        list(make_reader(file, validate_crcs=True).iter_messages())
    found, log = maps(tmp_path, path)
    assert log.count(f"the chunk at byte {chunk.chunk_start_offset} ") == 1 and "of its messages are left out" in log
    assert 0 < len(found) < len(pairs)
    assert all(any(np.array_equal(image, due) for due in plain.values()) for image in found.values())
    said = json.loads(stereod("info", path, "--json", folder=tmp_path)[0])
    assert said["damaged"] and said["cut"] is None
    assert sum(topic["messages"] for topic in said["topics"]) < 2 * len(pairs)


def test_the_recording_is_no_output(tmp_path, pairs):
    path = record("mcap", tmp_path, pairs)
    content = path.read_bytes()
    _, log = stereod("run", path, "--headless", "--record", path, folder=tmp_path, status=2)
    assert "also an input" in log and path.read_bytes() == content


def needs_euroc():
    if not EUROC.is_dir():
        pytest.skip(f"{EUROC} is not here")


@pytest.mark.parametrize("kind", ["bag-lz4", "db3", "mcap-zstd"])
def test_raw_images_are_rectified_by_the_calibration_in_the_recording(kind, tmp_path):
    needs_euroc()
    raw = euroc()
    write_pngs(tmp_path, raw)
    calibration = f"{EUROC}/left.yaml,{EUROC}/right.yaml"
    sources = ["--left", tmp_path / "left/%06d.png", "--right", tmp_path / "right/%06d.png"]
    expected, _ = maps(tmp_path, *sources, "--calibration", calibration)
    path = record(kind, tmp_path, raw, euroc_infos(), name="image_raw")
    found, log = maps(tmp_path, path)
    assert "rectifying" in log
    same(found, expected)
    # A calibration that is given wins, and is the same here.
    found, log = maps(tmp_path, path, "--calibration", calibration)
    assert "left.yaml" in log and "camera_info" not in log.replace("ROS camera_info", "")
    same(found, expected)
    # Without a calibration in the recording, and with one in a file.
    path = record("mcap", tmp_path, raw, name="image_raw")
    same(maps(tmp_path, path, "--calibration", calibration)[0], expected)
    stereod("rectify", path, "--calibration", calibration, "-o", "rectified", folder=tmp_path)
    assert (tmp_path / "rectified/left.mkv").stat().st_size > 0


@pytest.mark.parametrize("kind", ["bag-lz4", "db3-messages", "mcap-lz4"])
def test_frames_of_a_video(kind, tmp_path):
    if not OAKD.is_dir():
        pytest.skip(f"{OAKD} is not here")
    # In colour, the left view would be recorded as red, green and blue.
    grey = "filesrc location={} ! qtdemux ! h264parse ! avdec_h264 ! videoconvert ! video/x-raw,format=GRAY8"
    left, right = (grey.format(OAKD / f"{view}.mp4") for view in VIEWS)
    sources = ["--left", left, "--right", right, "--frames", "5"]
    expected, _ = maps(tmp_path, *sources)
    stereod("run", *sources, "-d", "16", "--headless", "--record", "views.mcap", "--mcap", "left,right", folder=tmp_path)
    views = {view: [] for view in VIEWS}
    with AnyReader([tmp_path / "views.mcap"], default_typestore=ROS2.store) as reader:
        for connection, _, raw in reader.messages():
            image = reader.deserialize(raw, connection.msgtype)
            views[connection.topic.split("/")[1]].append(image.data.reshape(image.height, image.width))
    same(maps(tmp_path, record(kind, tmp_path, list(zip(*views.values(), strict=True))))[0], expected)


def test_a_folder_of_euroc(tmp_path):
    needs_euroc()
    raw = euroc()
    write_pngs(tmp_path, raw)
    sources = ["--left", tmp_path / "left/%06d.png", "--right", tmp_path / "right/%06d.png"]
    files = [EUROC / f"cam{eye}_sensor.yaml" for eye in (0, 1)]
    expected, _ = maps(tmp_path, *sources, "--calibration", ",".join(map(str, files)))
    for eye in (0, 1):
        camera = tmp_path / "V1_01/mav0" / f"cam{eye}"
        (camera / "data").mkdir(parents=True)
        lines = ["#timestamp [ns],filename"]
        for number, pair in enumerate(raw):
            name = f"{stamp_of(number, 0)}.png"
            Image.fromarray(pair[eye]).save(camera / "data" / name)
            lines.append(f"{stamp_of(number, 0)},{name}")
        (camera / "data.csv").write_text("\r\n".join(lines) + "\r\n")
        shutil.copy(files[eye], camera / "sensor.yaml")
    found, log = maps(tmp_path, tmp_path / "V1_01")
    same(found, expected)
    assert "sensor.yaml" in log
    said = json.loads(stereod("info", "V1_01", "--json", folder=tmp_path)[0])
    assert said["pair"]["left"] == "cam0" and len(said["calibration_files"]) == 2


def test_a_drive_of_kitti(tmp_path, pairs, plain):
    for camera in range(4):
        folder = tmp_path / f"drive/image_{camera:02}"
        (folder / "data").mkdir(parents=True)
        for number, pair in enumerate(pairs):
            Image.fromarray(pair[camera % 2]).save(folder / f"data/{number:010}.png")
        times = [f"2011-09-26 13:02:25.{100_000_000 * number + camera:09}" for number in range(len(pairs))]
        (folder / "timestamps.txt").write_text("\n".join(times) + "\n")
    found, log = maps(tmp_path, "drive")
    same(found, plain)
    assert "image_00 + image_01" in log
    found, log = maps(tmp_path, "drive", "--left-topic", "image_02")
    same(found, plain)
    assert "image_02 + image_03" in log


@pytest.mark.parametrize("write", [ros_video, foxglove_video, image_video, packet_video])
@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_videos_in_messages(write, codec, tmp_path, pairs):
    left, right = (encode(tmp_path / view, [pair[eye] for pair in pairs], codec) for eye, view in enumerate(VIEWS))
    expected, _ = maps(tmp_path, "--left", left[1], "--right", right[1])
    write(tmp_path / "drive.mcap", [left[0], right[0]], codec)
    found, log = maps(tmp_path, "drive.mcap")
    same(found, expected)
    assert "left out" not in log
    said = json.loads(stereod("info", "drive.mcap", "--json", folder=tmp_path)[0])
    topic = next(topic for topic in said["topics"] if topic["name"] == "/left/image_rect/video")
    assert topic["image"] == {"width": 192, "height": 120, "format": codec}
    assert topic["rate"] == pytest.approx(20) and topic["messages"] == len(pairs)
    assert said["pair"]["pairs"] == len(pairs) and said["pair"]["skew_ms"] == pytest.approx(0.04)


def test_a_video_that_begins_between_key_frames(tmp_path, pairs):
    left, right = (encode(tmp_path / view, [pair[eye] for pair in pairs], "h264") for eye, view in enumerate(VIEWS))
    expected, _ = maps(tmp_path, "--left", left[1], "--right", right[1])
    # The fourth frame is the next one that builds on no other.
    foxglove_video(tmp_path / "drive.mcap", [left[0][1:], right[0][1:]], "h264")
    found, log = maps(tmp_path, "drive.mcap")
    assert len(found) == 3 and "image 0: it builds on a missing frame" in log and "2 damaged frames left out" in log
    for image, due in zip(found.values(), list(expected.values())[3:], strict=True):
        assert np.array_equal(image, due)


@pytest.mark.parametrize("codec", ["vp9", "av1"])
def test_other_videos_are_refused_by_name(codec, tmp_path):
    foxglove_video(tmp_path / "drive.mcap", [[b"1"], [b"1"]], codec)
    _, log = stereod("run", "drive.mcap", "--headless", folder=tmp_path, status=1)
    assert f'video in the format "{codec}" is not read; h264 and h265 are' in log
    said, _ = stereod("info", "drive.mcap", folder=tmp_path)
    assert f'unreadable: video in the format "{codec}"' in said


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_svo2(codec, tmp_path, pairs):
    units, video = encode(tmp_path / "both", [np.hstack(pair) for pair in pairs], codec)
    expected, _ = maps(tmp_path, "--side-by-side", video)
    svo2(tmp_path / "zed.svo2", units, (384, 120))
    found, log = maps(tmp_path, "zed.svo2")
    same(found, expected)
    assert f"zed.svo2 (Camera_SN{SERIAL}/side_by_side)" in log
    swapped, _ = maps(tmp_path, "zed.svo2", "--swap")
    same(swapped, maps(tmp_path, "--side-by-side", video, "--swap")[0])
    said = json.loads(stereod("info", "zed.svo2", "--json", folder=tmp_path)[0])
    assert said["kind"] == "ZED .svo2"
    topic = next(topic for topic in said["topics"] if topic["name"].endswith("side_by_side"))
    assert topic["image"] == {"width": 192, "height": 120, "format": f"{codec}, side by side"}
    assert topic["rate"] == pytest.approx(20)
    assert said["pair"]["left"] == said["pair"]["right"] == topic["name"]
    assert said["pair"]["pairs"] == len(pairs) and said["pair"]["largest_skew_ms"] == 0


def test_svo_that_is_not_read(tmp_path):
    svo2(tmp_path / "lossless.svo2", [b"\x89PNG and more"] * 3, (384, 120))
    _, log = stereod("run", "lossless.svo2", "--headless", folder=tmp_path, status=1)
    assert "encrypted and lossless .svo2 files are not read" in log
    (tmp_path / "old.svo").write_bytes(b"SVO and more")
    _, log = stereod("run", "old.svo", "--headless", folder=tmp_path, status=1)
    assert "ZED's older format (.svo) are not read" in log


@pytest.mark.parametrize("views", [
    ("image_left/{:06}_left.png", "image_right/{:06}_right.png"),
    ("image_lcam_front/{:06}_lcam_front.png", "image_rcam_front/{:06}_rcam_front.png"),
    ("image_2/{:06}_10.png", "image_3/{:06}_10.png"),
    ("scene{}/im0.png", "scene{}/im1.png"),
    ("scene{}/camera_00/im0.png", "scene{}/camera_02/im0.png"),
])
def test_folders_of_data_sets(views, tmp_path, pairs, plain):
    for number, pair in enumerate(pairs):
        for eye, view in enumerate(views):
            path = tmp_path / "set" / view.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pair[eye]).save(path)
    same(maps(tmp_path, "set")[0], plain)
    said = json.loads(stereod("info", "set", "--json", folder=tmp_path)[0])
    assert said["pair"]["pairs"] == len(pairs) and said["pair"]["skew_ms"] == 0
    assert said["topics"][0]["rate"] == pytest.approx(30, rel=1e-6)


def test_a_sequence_of_kitti_odometry(tmp_path, pairs, plain):
    width, height = pairs[0][0].shape[::-1]
    for number, pair in enumerate(pairs):
        for camera in range(4):
            path = tmp_path / f"00/image_{camera}/{number:06}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pair[camera % 2]).save(path)
    (tmp_path / "00/times.txt").write_text("".join(f"{0.1 * number:.6e}\n" for number in range(len(pairs))))
    rows = [f"{FOCAL} 0 {width / 2} {-FOCAL * shift} 0 {FOCAL} {height / 2} 0 0 0 1 0"
            for shift in (0, BASELINE, -0.06, BASELINE)]
    (tmp_path / "00/calib.txt").write_text("".join(f"P{camera}: {row}\n" for camera, row in enumerate(rows)))
    found, log = maps(tmp_path, "00", "--depth")
    assert "image_0 + image_1" in log and "calib.txt" in log and f"baseline {1000 * BASELINE:.1f} mm" in log
    for name, depth in found.items():
        disparity = plain[name] / 256
        known = disparity > 1
        expected = 1000 * FOCAL * BASELINE / disparity[known]
        assert known.mean() > 0.5 and np.abs(depth[known] - expected).max() <= 1 + 1e-3 * expected.max()
    _, log = maps(tmp_path, "00", "--left-topic", "image_2", "--depth")
    assert f"baseline {1000 * (BASELINE + 0.06):.1f} mm" in log
    said = json.loads(stereod("info", "00", "--json", folder=tmp_path)[0])
    assert said["kind"] == "KITTI odometry" and said["topics"][0]["rate"] == pytest.approx(10)
