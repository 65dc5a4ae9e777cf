"""Messages of ROS 2, received by ROS's rclpy (Fast DDS) and by Cyclone DDS."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import rclpy
from PIL import Image as Picture
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, LaserScan, PointCloud2
from stereo_msgs.msg import DisparityImage

PROGRAM = os.environ["STEREOD_TEST_PROGRAM"]
HERE = Path(__file__).resolve().parent
# A cloud of this size fits into the buffer that Linux gives a socket.
WIDTH, HEIGHT, FOCAL, BASELINE = 96, 72, 90.0, 0.12
TOPICS = {
    "left/image_rect": Image,
    "right/image_rect": Image,
    "left/image_rect/compressed": CompressedImage,
    "left/camera_info": CameraInfo,
    "right/camera_info": CameraInfo,
    "disparity": DisparityImage,
    "depth/image_rect": Image,
    "points2": PointCloud2,
    "confidence": Image,
}
# A domain of this test alone, on this machine alone.
os.environ |= {"ROS_DOMAIN_ID": str(os.getpid() % 100 + 1), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STEREOD_")}


def start(folder, *arguments, frames=0, size=(WIDTH, HEIGHT)):
    """Starts a run of the demo scene at its pace."""
    command = [PROGRAM, "run", "--demo", "--demo-size", "{}x{}".format(*size), "-d", "32", "--headless", "--engine", "cpu",
               "--frames", str(frames), "--focal", str(FOCAL), "--baseline", str(BASELINE),
               "--set=source.pace=realtime", *arguments]
    with open(folder / "log", "w") as log:
        return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stderr=log)


def end(program):
    program.terminate()
    assert program.wait(60) == 0


@pytest.fixture(scope="module")
def node():
    rclpy.init()
    yield rclpy.create_node("listener")
    rclpy.shutdown()


def whole(messages):
    """Stamps of the pairs of which every message was received."""
    return set.intersection(*(set(got) for got in messages.values()))


@pytest.fixture(scope="module")
def received(node, tmp_path_factory):
    """Folder of the run's pictures, and messages of each topic by their stamp."""
    folder = tmp_path_factory.mktemp("run")
    messages = {name: {} for name in TOPICS}

    def keep(name):
        def taken(message):
            stamp = message.header.stamp
            messages[name][stamp.sec * 10**9 + stamp.nanosec] = message
        return taken

    qos = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    for name, kind in TOPICS.items():
        node.create_subscription(kind, f"/front/{name}", keep(name), qos)
    every = "left,left-jpeg,right,disparity,depth,points,confidence"
    program = start(folder, "--ros2", "/front", "--set", f"ros2.topics={every}", "--pictures", "out")
    limit = time.monotonic() + 60
    while time.monotonic() < limit and len(whole(messages)) < 20:
        rclpy.spin_once(node, timeout_sec=0.1)
    end(program)
    assert len(whole(messages)) >= 20, {name: len(got) for name, got in messages.items()}
    return folder, messages


def pixels(message, kind):
    return np.frombuffer(message.data, kind).reshape(message.height, message.width)


def test_disparities_are_those_of_the_pictures(received):
    folder, messages = received
    about = json.loads((folder / "out" / "disparity.json").read_text())
    assert about["scale"] == 256
    pictures = [np.asarray(Picture.open(path)) for path in sorted((folder / "out").glob("*.png"))]
    for stamp, message in messages["disparity"].items():
        assert (message.f, message.image.encoding) == (FOCAL, "32FC1")
        assert abs(message.t - BASELINE) < 1e-6
        # The scene has 30 pairs a second, from 0 on.
        picture, disparity = pictures[round(stamp * 30 / 1e9)], pixels(message.image, np.float32)
        assert np.array_equal(np.isfinite(disparity), picture > 0)
        # A known disparity of 0 is stored as 1, because 0 is unknown.
        assert np.array_equal(np.maximum(disparity[picture > 0] * 256, 1), picture[picture > 0])


def test_messages_of_a_pair_have_one_stamp_and_belong_together(received):
    _, messages = received
    for stamp in whole(messages):
        of = {name: got[stamp] for name, got in messages.items()}
        disparity = pixels(of["disparity"].image, np.float32)
        depth = pixels(of["depth/image_rect"], np.uint16) / 1e3
        known = depth > 0
        assert known.mean() > 0.5 and np.isfinite(disparity[known]).all()
        assert np.allclose(depth[known], FOCAL * BASELINE / disparity[known], atol=6e-4)
        points = np.frombuffer(of["points2"].data, np.float32).reshape(HEIGHT, WIDTH, 4)
        assert np.allclose(points[known, 2], depth[known], atol=6e-4)
        assert of["right/camera_info"].p[3] == pytest.approx(-FOCAL * BASELINE)
        for name, message in of.items():
            assert message.header.frame_id == "left_optical_frame", name
    assert not np.array_equal(*(pixels(messages[f"{eye}/image_rect"][stamp], np.uint8) for eye in ("left", "right")))


def test_a_late_subscriber_of_another_implementation_gets_the_transform(node, tmp_path):
    program = start(tmp_path, "--ros2", "/")
    got = []
    best_effort = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    heard = node.create_subscription(DisparityImage, "/disparity", got.append, best_effort)
    limit = time.monotonic() + 60
    while time.monotonic() < limit and not got:
        rclpy.spin_once(node, timeout_sec=0.1)
    assert got, "the run has begun"
    late = subprocess.run([sys.executable, HERE / "late_tf.py"], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=60)
    end(program)
    node.destroy_subscription(heard)
    assert late.stdout.split() == ["left_optical_frame", "right_optical_frame", str(BASELINE), "0.0", "0.0"], late.stderr


def test_odometry_reaches_reliable_subscribers_and_places_the_vehicle(node, tmp_path):
    program = start(tmp_path, "--ros2", "/front", "--odometry", "--set=mount.x_m=0.25", size=(320, 240))
    # As rclpy and rclcpp ask by default.
    got = []
    heard = node.create_subscription(Odometry, "/front/odom", got.append, 10)
    moving = subprocess.Popen([sys.executable, HERE / "moving_tf.py"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    try:
        limit = time.monotonic() + 60
        while time.monotonic() < limit and (moving.poll() is None or len(got) < 5):
            rclpy.spin_once(node, timeout_sec=0.1)
        assert moving.poll() == 0 and len(got) >= 5, (tmp_path / "log").read_text()
    finally:
        moving.kill()
        end(program)
        node.destroy_subscription(heard)
    assert {(message.header.frame_id, message.child_frame_id) for message in got} == {("odom", "base_link")}
    found = json.loads(moving.stdout.read())
    assert [place[:2] for place in found["moving"]] == [["odom", "base_link"]]
    assert ["base_link", "stereo_link", [0.25, 0, 0]] in found["static"], found


def test_a_stalled_subscriber_costs_the_run_nothing(tmp_path):
    stalled = subprocess.Popen([sys.executable, HERE / "stalled.py"], env=ENVIRONMENT)
    try:
        program = start(tmp_path, "--ros2", "/", "--set", "ros2.reliable=true", "--stats", "stats.json", frames=450)
        assert program.wait(120) == 0
        _, status = os.waitpid(stalled.pid, os.WNOHANG | os.WUNTRACED)
        assert os.WIFSTOPPED(status), "it has received and stopped"
    finally:
        stalled.kill()
    statistics = json.loads((tmp_path / "stats.json").read_text())
    assert (statistics["matched"], statistics["dropped"]) == (450, 0), statistics


def lines_of(folder):
    """Lines of JSON by the stamp in microseconds."""
    lines = map(json.loads, (folder / "lines.ndjson").read_text().splitlines())
    return {round(line["stamp"] * 1e6): line for line in lines}


def detected(node, folder, *arguments):
    """What a detector of the graph gets back, scans, and the lines of the same run by their stamp in microseconds."""
    program = start(folder, "--ros2", "/", "--set=obstacles.boxes=ros2:/detections", "--obstacles", "lines.ndjson",
                    "--set=mount.x_m=0.25", "--set=mount.z_m=0.2", "--set=obstacles.overhangs=false", "--set=obstacles.far_m=1.3",
                    "--set=obstacles.bin_deg=3", *arguments)
    scans, best_effort = [], QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    heard = node.create_subscription(LaserScan, "/scan", scans.append, best_effort)
    detector = subprocess.Popen([sys.executable, HERE / "detector.py", str(WIDTH), str(HEIGHT)], env=ENVIRONMENT,
                                stdout=subprocess.PIPE, text=True)
    try:
        limit = time.monotonic() + 60
        while time.monotonic() < limit and (detector.poll() is None or len(scans) < 5):
            rclpy.spin_once(node, timeout_sec=0.1)
        assert detector.poll() == 0 and len(scans) >= 5, (folder / "log").read_text()
    finally:
        detector.kill()
        end(program)
        node.destroy_subscription(heard)
    return json.loads(detector.stdout.read()), scans, lines_of(folder)


def test_boxes_of_a_graph_come_back_with_places_and_scans_tell_clear_from_unknown(node, tmp_path):
    found, scans, lines = detected(node, tmp_path)
    [thing] = found["things"]
    line = lines[round(thing["stamp"] * 1e6)]
    [told] = line["things"]
    assert (thing["frame"], thing["label"], thing["score"], thing["id"]) == ("base_link", "person", 0.75, "7")
    assert (told["label"], told["score"], told["id"]) == ("person", 0.75, "7")
    assert told["box_px"] == [WIDTH / 4, HEIGHT / 4, 3 * WIDTH / 4, 3 * HEIGHT / 4]
    assert told["nearest"]["distance_m"] > 0.3
    assert thing["position_m"] == pytest.approx(told["nearest"]["position_m"], abs=1e-3)
    depth = told["nearest"]["position_m"][0] - 0.25
    assert thing["size_m"] == pytest.approx([0, WIDTH / 2 * depth / FOCAL, HEIGHT / 2 * depth / FOCAL], rel=0.01)
    log = (tmp_path / "log").read_text()
    assert log.count("a message with boxes is refused: box 0 ") == 1, log
    assert "3 messages with boxes were refused" in log, log

    # The vehicle's frame, which the mount places.
    assert ["base_link", "stereo_link", [0.25, 0, 0.2]] in found["static"], found["static"]
    assert ["base_link", "stereo_scan", [0.25, 0, 0.2]] in found["static"]
    assert found["moving"] == []

    states = ""
    for scan in scans:
        line = lines[round(scan.header.stamp.sec * 1e6 + scan.header.stamp.nanosec / 1e3)]["scan"]
        bins, ranges = line["states"], np.array(scan.ranges)
        assert scan.header.frame_id == "stereo_scan" and len(ranges) == len(bins)
        middle = np.radians(line["first_deg"] + line["bin_deg"] / 2)
        assert scan.angle_min == pytest.approx(middle, abs=1e-5)
        assert scan.angle_increment == pytest.approx(np.radians(line["bin_deg"]), abs=1e-6)
        assert scan.angle_max == pytest.approx(middle + (len(bins) - 1) * scan.angle_increment, abs=1e-4)
        for state, distance, value in zip(bins, line["distances_m"], ranges):
            if state == "o":
                assert value == pytest.approx(distance, abs=1e-3) and scan.range_min <= value <= scan.range_max
            else:
                assert np.isposinf(value) if state == "c" else np.isnan(value)
        states += bins
    assert set(states) == set("ocu"), states


def test_a_mount_that_follows_the_ground_is_published_for_each_pair(node, tmp_path):
    found, _, lines = detected(node, tmp_path, "--set=mount.ground=track")
    assert [place[:2] for place in found["static"]] == [["stereo_link", "left_optical_frame"],
                                                       ["left_optical_frame", "right_optical_frame"]]
    mounts = [line["mount"]["position_m"] for line in lines.values()]
    assert {tuple(place[:2]) for place in found["moving"]} == {("base_link", "stereo_link"), ("base_link", "stereo_scan")}
    assert all(place[2] in mounts for place in found["moving"]), found["moving"]
