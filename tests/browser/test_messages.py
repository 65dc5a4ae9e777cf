"""MCAP files and the Foxglove protocol, read by programs of others."""

import base64
import io
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import HEIGHT, PROGRAM, WIDTH
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from PIL import Image
from rosbags.highlevel import AnyReader
from rosbags.rosbag2.metadata import parse_qos
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

FOCAL, BASELINE = 400.0, 0.1
CAMERAS = ["--focal", str(FOCAL), "--baseline", str(BASELINE)]
TOPICS = "left,left-jpeg,right,disparity,disparity-jpeg,depth,depth-float,depth-png,points,confidence"
FRAMES = 8


def disparity_of(folder, number):
    """Disparity in pixels of a pair, from its 16-bit PNG image."""
    stored = np.asarray(Image.open(folder / "out" / f"{number:06}.png")).astype(np.float32)
    # 0 is unknown, so a disparity of 0 is stored as 1.
    return np.where(stored == 0, np.nan, np.where(stored == 1, 0, stored / 256)).astype(np.float32)


def pixels(image, kind):
    return np.frombuffer(bytes(image.data), kind).reshape(image.height, image.width, -1).squeeze()


def number_of(stamp):
    """Number of the pair of a time stamp: the demo scene has 30 pairs a second."""
    return round((stamp.sec + stamp.nanosec * 1e-9) * 30)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Folder with out.mcap and the same maps as PNG images."""
    folder = tmp_path_factory.mktemp("recording")
    command = [PROGRAM, "run", "--demo", "--demo-size", f"{WIDTH}x{HEIGHT}", "--frames", str(FRAMES), "-d", "64", "--headless",
               "--record", "out.mcap", "--mcap", TOPICS, "--pictures", "out", *CAMERAS]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return folder


def test_the_python_reader_of_mcap_sees_the_recorded_numbers(recording):
    found = {}
    with open(recording / "out.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()], validate_crcs=True)
        header, statistics = reader.get_header(), reader.get_summary().statistics
        assert header.profile == "ros2" and statistics.chunk_count >= FRAMES
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
        profiles = {}
        for _, channel, record, message in reader.iter_decoded_messages():
            found.setdefault(channel.topic, []).append(message)
            [profiles[channel.topic]] = parse_qos(channel.metadata["offered_qos_profiles"])
            if channel.topic != "/tf_static":
                stamp = message.header.stamp
                assert record.log_time == stamp.sec * 10**9 + stamp.nanosec
    assert metadata["stereod"]["FOCAL_LENGTH_PX"] == "400"
    for topic, profile in profiles.items():
        assert profile.reliability.name == "RELIABLE" and profile.history.name == "KEEP_LAST"
        assert profile.durability.name == ("TRANSIENT_LOCAL" if topic == "/tf_static" else "VOLATILE")
    counts = {topic: len(messages) for topic, messages in found.items()}
    assert counts.pop("/tf_static") == 1
    assert set(counts.values()) == {FRAMES} and len(counts) == 12, counts
    for number in range(FRAMES):
        expected = disparity_of(recording, number)
        known = np.isfinite(expected)
        assert known.mean() > 0.5
        messages = {topic: messages[number] for topic, messages in found.items() if topic != "/tf_static"}
        assert {number_of(message.header.stamp) for message in messages.values()} == {number}
        disparity = messages["/disparity"]
        np.testing.assert_array_equal(pixels(disparity.image, np.float32), expected)
        assert (disparity.f, round(disparity.t, 6)) == (FOCAL, BASELINE)
        coloured = messages["/disparity/image_color/compressed"]
        assert coloured.format == "jpeg"
        coloured = np.asarray(Image.open(io.BytesIO(bytes(coloured.data)))).astype(int)
        # Far is blue, near is red, unknown is grey.
        assert coloured.shape == (HEIGHT, WIDTH, 3) and abs(coloured[~known] - 112).mean() < 20
        redness = (coloured[..., 0] - coloured[..., 2])[known]
        assert redness[expected[known] > 48].mean() > 60 > -60 > redness[expected[known] < 12].mean()
        depth = pixels(messages["/depth/image_rect"], np.uint16)
        metres = FOCAL * BASELINE / np.where(expected > 0, expected, np.inf)
        fits = known & (metres > 0) & (metres < 65.5)
        assert np.abs(depth[fits] - 1000 * metres[fits]).max() <= 0.51
        assert (depth[~fits] == 0).all()
        metric = pixels(messages["/depth/image_rect_float"], np.float32)
        np.testing.assert_allclose(metric[known & (metres > 0)], metres[known & (metres > 0)], rtol=1e-5)
        assert np.isnan(metric[~(known & (metres > 0))]).all()
        compressed = messages["/depth/image_rect/compressedDepth"]
        assert compressed.format == "16UC1; compressedDepth png"
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(bytes(compressed.data)[12:]))), depth)
        cloud = messages["/points2"]
        assert [field.name for field in cloud.fields] == ["x", "y", "z", "rgb"] and not cloud.is_dense
        points = np.frombuffer(bytes(cloud.data), np.float32).reshape(HEIGHT, WIDTH, 4)
        x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
        np.testing.assert_allclose(points[fits][:, 2], metres[fits], rtol=1e-5)
        np.testing.assert_allclose(points[fits][:, 0], ((x - (WIDTH - 1) / 2) * metres / FOCAL)[fits], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(points[fits][:, 1], ((y - (HEIGHT - 1) / 2) * metres / FOCAL)[fits], rtol=1e-4, atol=1e-5)
        assert np.isnan(points[~known]).any(axis=1).all()
        left = pixels(messages["/left/image_rect"], np.uint8)
        colours = np.frombuffer(bytes(cloud.data), np.uint8).reshape(HEIGHT, WIDTH, 16)[..., 12:15][..., ::-1]
        np.testing.assert_array_equal(left if left.ndim == 3 else np.stack([left] * 3, axis=-1), colours)
        confidence = pixels(messages["/confidence"], np.uint8)
        assert (confidence[~known] == 0).all() and (confidence[known] > 0).any()
        [left_camera, right_camera] = [messages[f"/{eye}/camera_info"] for eye in ("left", "right")]
        assert left_camera.p[3] == 0 and right_camera.p[3] == pytest.approx(-FOCAL * BASELINE)
        assert (left_camera.width, left_camera.height, list(left_camera.k)[0]) == (WIDTH, HEIGHT, FOCAL)
        # image_geometry's StereoCameraModel asserts one frame, because P of the right camera counts from the left one.
        assert {message.header.frame_id for message in messages.values()} == {"left_optical_frame"}
    [upright, transform] = found["/tf_static"][0].transforms
    assert upright.header.frame_id == "stereo_link" and upright.child_frame_id == "left_optical_frame"
    # A point one metre ahead of the camera lies along x, one to the right along -y, one below along -z (REP 103).
    q = upright.transform.rotation
    turn = np.array([[1 - 2 * (q.y**2 + q.z**2), 2 * (q.x * q.y - q.z * q.w), 2 * (q.x * q.z + q.y * q.w)],
                     [2 * (q.x * q.y + q.z * q.w), 1 - 2 * (q.x**2 + q.z**2), 2 * (q.y * q.z - q.x * q.w)],
                     [2 * (q.x * q.z - q.y * q.w), 2 * (q.y * q.z + q.x * q.w), 1 - 2 * (q.x**2 + q.y**2)]])
    np.testing.assert_allclose(turn, [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], atol=1e-12)
    assert transform.header.frame_id == "left_optical_frame" and transform.child_frame_id == "right_optical_frame"
    assert transform.transform.translation.x == pytest.approx(BASELINE)


def test_disparities_are_relative_to_the_principal_points(tmp_path):
    """stereo_msgs/DisparityImage: d = x_l - x_r - (cx_l - cx_r), so that Z = f T / d."""
    (tmp_path / "calib.txt").write_text(f"cam0=[400 0 47.5; 0 400 35.5; 0 0 1]\ncam1=[400 0 60 ; 0 400 35.5; 0 0 1]\n"
                                        f"doffs=12.5\nbaseline=100\nwidth={WIDTH}\nheight={HEIGHT}\nndisp=64\n")
    command = [PROGRAM, "run", "--demo", "--demo-size", f"{WIDTH}x{HEIGHT}", "--frames", "1", "-d", "64", "--headless",
               "--record", "out.mcap", "--mcap", "disparity,depth-float", "--pictures", "out", "--calibration", "calib.txt"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    with open(tmp_path / "out.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = {channel.topic: message for _, channel, _, message in reader.iter_decoded_messages()}
    disparity = found["/disparity"]
    values, stored = pixels(disparity.image, np.float32), disparity_of(tmp_path, 0)
    np.testing.assert_array_equal(values, stored + 12.5)
    assert (disparity.min_disparity, disparity.max_disparity) == (12.5, 75.5)
    known = np.isfinite(values)
    metres = pixels(found["/depth/image_rect_float"], np.float32)
    np.testing.assert_allclose(metres[known], disparity.f * disparity.t / values[known], rtol=1e-5)


def test_the_types_are_those_of_ros(recording):
    known = get_typestore(Stores.ROS2_JAZZY)
    with AnyReader([recording / "out.mcap"], default_typestore=known) as reader:
        assert len(reader.connections) == 13
        for connection in reader.connections:
            ours = get_typestore(Stores.EMPTY)
            ours.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            # Hashes cover all fields of all types.
            assert ours.hash_rihs01(connection.msgtype) == known.hash_rihs01(connection.msgtype), connection.topic
        messages = [reader.deserialize(raw, it.msgtype) for it, _, raw in reader.messages() if it.topic == "/points2"]
    assert len(messages) == FRAMES and messages[0].point_step == 16


# Definitions of vision_msgs 4.1.1, shortened to what counts for the hash of a type.
VISION = {
    "Detection3DArray": "std_msgs/Header header\nDetection3D[] detections",
    "Detection3D": "std_msgs/Header header\nObjectHypothesisWithPose[] results\nBoundingBox3D bbox\nstring id",
    "ObjectHypothesisWithPose": "ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose",
    "ObjectHypothesis": "string class_id\nfloat64 score",
    "BoundingBox3D": "geometry_msgs/Pose center\ngeometry_msgs/Vector3 size",
}


def test_obstacles_are_read_and_their_frames_connect(tmp_path):
    command = [PROGRAM, "run", "--demo", "--demo-size", "320x240", "--frames", "4", "-d", "64", "--headless",
               "--set", "obstacles.find=true", "--record", "out.mcap", "--set", "output.frame_prefix=front_", *CAMERAS]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    known = get_typestore(Stores.ROS2_HUMBLE)
    for name, text in VISION.items():
        known.register(get_types_from_msg(text, f"vision_msgs/msg/{name}"))
    # The hash of the package's own files.
    assert known.hash_rihs01("vision_msgs/msg/Detection3DArray") == (
        "RIHS01_793f5eab9595ac1c0da07873cc859db42eae51f0ee76056db8562515d830e018")
    found = {}
    with AnyReader([tmp_path / "out.mcap"], default_typestore=known) as reader:
        for connection in reader.connections:
            ours = get_typestore(Stores.EMPTY)
            ours.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            assert ours.hash_rihs01(connection.msgtype) == known.hash_rihs01(connection.msgtype), connection.topic
        for connection, _, raw in reader.messages():
            found.setdefault(connection.topic, []).append(known.deserialize_cdr(raw, connection.msgtype))
    for number, (scan, detections) in enumerate(zip(found["/scan"], found["/obstacles"], strict=True)):
        assert (scan.header.frame_id, detections.header.frame_id) == ("front_stereo_scan", "base_link")
        assert number_of(scan.header.stamp) == number_of(detections.header.stamp) == number
        # Consumers check that the ends fit the number of ranges.
        assert round((scan.angle_max - scan.angle_min) / scan.angle_increment) + 1 == len(scan.ranges) > 10
        assert scan.angle_min < 0 < scan.angle_max and len(scan.intensities) == 0
        near = scan.ranges[np.isfinite(scan.ranges)]
        assert len(near) and (near >= scan.range_min).all() and (near <= scan.range_max).all()
        assert not np.isneginf(scan.ranges).any()
    assert number == 3
    [static] = found["/tf_static"]
    outer = {each.child_frame_id: each.header.frame_id for each in static.transforms}
    assert len(outer) == len(static.transforms) == 4
    for frame in ["front_stereo_scan", "front_left_optical_frame", "front_right_optical_frame"]:
        while frame in outer:
            frame = outer[frame]
        assert frame == "base_link"


def transforms_of(messages):
    """Place of each inner frame by the stamp: its outer frame, position and attitude."""
    found = {}
    for each in (each for message in messages for each in message.transforms):
        at, turn, stamp = each.transform.translation, each.transform.rotation, each.header.stamp
        found.setdefault(each.child_frame_id, {})[stamp.sec * 10**9 + stamp.nanosec] = (
            each.header.frame_id, [at.x, at.y, at.z], [turn.x, turn.y, turn.z, turn.w])
    return found


@pytest.mark.parametrize("prefix", ["", "front_"])
@pytest.mark.parametrize("ground", ["none", "fixed", "track"])
def test_the_motion_is_read_and_its_frames_connect(tmp_path, prefix, ground):
    obstacles = [] if ground == "none" else ["--set=obstacles.find=true", f"--set=mount.ground={ground}"]
    command = [PROGRAM, "run", "--demo", "--demo-size", "320x240", "--frames", str(FRAMES), "-d", "64", "--headless",
               "--odometry", "--record", "out.mcap", "--mcap", "left,odometry", "--set=mount.x_m=0.25",
               "--set=mount.z_m=0.8", f"--set=output.frame_prefix={prefix}", *obstacles, *CAMERAS]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    known, found = get_typestore(Stores.ROS2_JAZZY), {}
    with AnyReader([tmp_path / "out.mcap"], default_typestore=known) as reader:
        for connection in reader.connections:
            ours = get_typestore(Stores.EMPTY)
            ours.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            assert ours.hash_rihs01(connection.msgtype) == known.hash_rihs01(connection.msgtype), connection.topic
        for connection, _, raw in reader.messages():
            found.setdefault(connection.topic, []).append(known.deserialize_cdr(raw, connection.msgtype))
    fixed, moving = transforms_of(found["/tf_static"]), transforms_of(found.get("/tf", []))
    # A frame has one parent, and every frame hangs below one root.
    assert not set(fixed) & set(moving)
    outer = {inner: {place[0] for place in places.values()} for inner, places in (fixed | moving).items()}
    assert all(len(frames) == 1 for frames in outer.values()), outer
    frame = f"{prefix}right_optical_frame"
    while frame in outer:
        [frame] = outer[frame]
    assert frame == ("base_link" if prefix else "odom")
    [link] = [places[f"{prefix}stereo_link"] for places in (fixed, moving) if f"{prefix}stereo_link" in places]
    if ground == "track":
        assert len(link) == FRAMES
    else:
        assert [place[1] for place in link.values()] == [[0.25, 0, 0.8]]
    # The first pair has no pose before it.
    assert 0 < len(found["/odom"]) < FRAMES
    for message in found["/odom"]:
        assert (message.header.frame_id, message.child_frame_id) == (f"{prefix}odom", "base_link")
        assert number_of(message.header.stamp) > 0
        at, turn = message.pose.pose.position, message.pose.pose.orientation
        place = [at.x, at.y, at.z], [turn.x, turn.y, turn.z, turn.w]
        np.testing.assert_allclose(np.linalg.norm(place[1]), 1)
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        if not prefix:
            assert moving["base_link"][stamp] == ("odom", *place)
        covariance = np.reshape(message.pose.covariance, (6, 6))
        np.testing.assert_allclose(covariance, covariance.T, rtol=1e-9, atol=1e-15)
        assert (np.diag(covariance) > 0).all() and (np.linalg.eigvalsh(covariance) > -1e-12).all()
        np.testing.assert_array_equal(np.reshape(message.twist.covariance, (6, 6)), 9999 * np.eye(6))
        assert np.isfinite([message.twist.twist.linear.x, message.twist.twist.angular.z]).all()


def test_the_client_of_foxglove_reads_every_topic(run, tmp_path):
    modules = os.environ.get("STEREOD_NODE_MODULES")
    if not modules:
        pytest.skip("Foxglove's client is missing; it needs npm")
    program = run("--pictures", "out", *CAMERAS)
    address = f"ws://127.0.0.1:{program.port}/foxglove?token={program.token}"
    script = Path(__file__).with_name("foxglove.mjs")
    client = subprocess.run(["node", script, address, "14"], capture_output=True, text=True, timeout=120)
    assert client.returncode == 0, client.stdout[-3000:] + client.stderr
    lines = [json.loads(line) for line in client.stdout.splitlines()]
    program.stop()
    assert "parameters" in lines[0]["serverInfo"]["capabilities"]
    found = {line["topic"]: line for line in lines if "topic" in line}
    assert len(found) == 14, found.keys()
    [parameters] = [line for line in lines if "parameters" in line]
    assert {"name": "matching.uniqueness", "value": 17} in parameters["parameters"] and parameters["id"] == "test"
    disparity = found["/disparity"]["message"]
    stamp = disparity["header"]["stamp"]
    expected = disparity_of(tmp_path, round((stamp["sec"] + stamp["nanosec"] * 1e-9) * 30))
    data = base64.b64decode(disparity["image"]["data"]["base64"])
    np.testing.assert_array_equal(np.frombuffer(data, np.float32).reshape(HEIGHT, WIDTH), expected)
    jpeg = base64.b64decode(found["/left/image_rect/compressed"]["message"]["data"]["base64"])
    assert jpeg[:2] == b"\xff\xd8"
    [status] = found["/diagnostics"]["message"]["status"]
    assert status["name"] == "stereod" and int(dict((v["key"], v["value"]) for v in status["values"])["matched pairs"]) > 0
