"""Cameras of a ROS 2 graph as the source of a run, and a run that is tuned and asked by the graph."""

import json
import os
import subprocess
import time

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from PIL import Image as Picture
from rcl_interfaces.msg import Parameter, ParameterEvent, ParameterType, ParameterValue
from rcl_interfaces.srv import (DescribeParameters, GetParameters, ListParameters, SetParameters,
                                SetParametersAtomically)
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image
from std_srvs.srv import SetBool, Trigger

from test_ros2 import ENVIRONMENT, PROGRAM, end, node, start  # noqa: F401

WIDTH, HEIGHT, FOCAL, BASELINE = 192, 120, 300.0, 0.1
START, PERIOD = 1_403_715_273_262_142_976, 100_000_000


def generated(count):
    """Pairs of a textured wall that comes nearer."""
    random = np.random.default_rng(5)
    rough = random.integers(0, 256, (HEIGHT // 3 + 1, WIDTH // 3 + 40), np.uint8)
    texture = np.kron(rough, np.ones((3, 3), np.uint8))[:HEIGHT]
    return [(texture[:, :WIDTH], texture[:, 6 + n % 20 : 6 + n % 20 + WIDTH]) for n in range(count)]


class Cameras:
    """Publishes the pairs of two rectified cameras."""

    def __init__(self, node, reliability, name="/cam"):
        qos = QoSProfile(depth=5, reliability=reliability)
        self.images = [node.create_publisher(Image, f"{name}/{eye}/image_rect", qos) for eye in ("left", "right")]
        self.infos = [node.create_publisher(CameraInfo, f"{name}/{eye}/camera_info", qos) for eye in ("left", "right")]

    def publish(self, number, pair, eyes=(0, 1)):
        for eye in eyes:
            image, info = Image(), CameraInfo()
            # The right view's clock is 40 us late.
            stamp = START + number * PERIOD + eye * 40_000
            for message in image, info:
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
                message.height, message.width = pair[eye].shape
            image.encoding, image.step = "mono8", WIDTH
            image.data = np.ascontiguousarray(pair[eye]).tobytes()
            info.distortion_model, info.d = "plumb_bob", [0.0] * 5
            info.k = [FOCAL, 0.0, WIDTH / 2, 0.0, FOCAL, HEIGHT / 2, 0.0, 0.0, 1.0]
            info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
            shift = -FOCAL * BASELINE if eye else 0.0
            info.p = [FOCAL, 0.0, WIDTH / 2, shift, 0.0, FOCAL, HEIGHT / 2, 0.0, 0.0, 0.0, 1.0, 0.0]
            self.infos[eye].publish(info)
            self.images[eye].publish(image)


def run(folder, *arguments):
    command = [PROGRAM, "run", "-d", "32", "--engine", "cpu", "--headless", *map(str, arguments)]
    with open(folder / "log", "w") as log:
        return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stderr=log)


@pytest.mark.parametrize("reliability", [ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE])
def test_cameras_of_a_graph_are_a_source(node, tmp_path, reliability):  # noqa: F811
    pairs = generated(400)
    cameras = Cameras(node, reliability)
    program = run(tmp_path, "--left", "ros2:/cam/left/image_rect", "--right", "ros2:/cam/right/image_rect",
                  "--depth", "--pictures", "out", "--frames", 20, "--stats", "stats.json")
    number = 0
    while program.poll() is None and number < len(pairs):
        # One eye is lost now and then.
        eyes = {3: [0], 7: [1]}.get(number % 10, [0, 1])
        cameras.publish(number, pairs[number], eyes)
        rclpy.spin_once(node, timeout_sec=0)
        time.sleep(0.1)
        number += 1
    log = (tmp_path / "log").read_text()
    assert program.wait(30) == 0, log
    assert "/cam/left/camera_info" in log, log
    statistics = json.loads((tmp_path / "stats.json").read_text())
    assert statistics["matched"] == 20
    # The same pairs as PNG images have the same depth.
    folder = tmp_path / "png"
    for view in "left", "right":
        (folder / view).mkdir(parents=True)
    for shift in range(20):
        for eye, view in enumerate(("left", "right")):
            Picture.fromarray(np.ascontiguousarray(pairs[shift][eye])).save(folder / view / f"{shift:06}.png")
    plain = run(folder, "--left", "left/%06d.png", "--right", "right/%06d.png", "--depth", "--focal", FOCAL,
                "--baseline", BASELINE, "--pictures", "out")
    assert plain.wait(60) == 0
    expected = [np.asarray(Picture.open(path)).tobytes() for path in sorted((folder / "out").glob("*.png"))]
    assert len(set(expected)) == 20
    found = [expected.index(np.asarray(Picture.open(path)).tobytes())
             for path in sorted((tmp_path / "out").glob("*.png"))]
    assert len(found) == 20 and 3 not in {n % 10 for n in found} and 7 not in {n % 10 for n in found}
    steps = np.diff(found) % 20
    assert ((steps >= 1) & (steps <= 5)).all(), found


def test_a_graph_is_listed(node, tmp_path):  # noqa: F811
    cameras, pairs = Cameras(node, ReliabilityPolicy.BEST_EFFORT, "/listed"), generated(1)
    info = subprocess.Popen([PROGRAM, "info", "ros2:/listed", "--json"], cwd=tmp_path, env=ENVIRONMENT,
                            stdout=subprocess.PIPE, text=True)
    number = 0
    while info.poll() is None and number < 400:
        cameras.publish(number, pairs[0])
        time.sleep(0.1)
        number += 1
    found = json.loads(info.stdout.read())
    topics = {topic["name"]: topic for topic in found["topics"]}
    assert set(topics) == {f"/listed/{eye}/{name}" for eye in ("left", "right") for name in ("image_rect", "camera_info")}
    assert abs(topics["/listed/left/image_rect"]["rate"] - 10) < 0.1
    assert found["pair"]["left"] == "/listed/left/image_rect"


def test_nobody_publishes(tmp_path):
    program = run(tmp_path, "ros2:/nobody", "--set", "source.wait_s=0", "--stats", "s.json")
    assert program.wait(60) == 1
    log = (tmp_path / "log").read_text()
    assert "/nobody" in log and "ROS_DOMAIN_ID" in log


def call(node, kind, name, request):  # noqa: F811
    client = node.create_client(kind, name)
    try:
        assert client.wait_for_service(timeout_sec=20), name
        done = client.call_async(request)
        rclpy.spin_until_future_complete(node, done, timeout_sec=20)
        assert done.done(), name
        return done.result()
    finally:
        node.destroy_client(client)


def value(new):
    if isinstance(new, int):
        return ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=new)
    return ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=new)


def test_topics_of_the_cameras_are_not_published_again(node, tmp_path):  # noqa: F811
    pairs = generated(400)
    cameras = Cameras(node, ReliabilityPolicy.BEST_EFFORT)
    program = run(tmp_path, "ros2:/cam", "--ros2", "/cam", "--frames", 20)
    number = 0
    while program.poll() is None and number < len(pairs):
        cameras.publish(number, pairs[number])
        rclpy.spin_once(node, timeout_sec=0)
        time.sleep(0.1)
        number += 1
    log = (tmp_path / "log").read_text()
    assert program.returncode == 1 and "of the graph is published by another node" in log, log


def test_parameters_services_and_diagnostics(node, tmp_path):  # noqa: F811
    program = start(tmp_path, "--ros2", "/tuned", "--record", "out.mkv", "--set", f"window.snapshots={tmp_path}",
                    frames=100_000)
    try:
        own = "/tuned/stereod"
        names = call(node, ListParameters, f"{own}/list_parameters", ListParameters.Request()).result.names
        assert {"matching.p1", "matching.paths", "colour.map"} <= set(names)

        # As many values as arrive, and the node goes on.
        values = call(node, GetParameters, f"{own}/get_parameters", GetParameters.Request(names=names)).values
        assert 15 < len(values) < len(names)

        def changed(name, new):
            request = SetParameters.Request(parameters=[Parameter(name=name, value=value(new))])
            return call(node, SetParameters, f"{own}/set_parameters", request).results[0]

        def present(*names):
            request = GetParameters.Request(names=names)
            return [v.integer_value or v.string_value
                    for v in call(node, GetParameters, f"{own}/get_parameters", request).values]

        request = DescribeParameters.Request(names=["matching.uniqueness", "matching.disparities"])
        answer = call(node, DescribeParameters, f"{own}/describe_parameters", request)
        described = {descriptor.name: descriptor for descriptor in answer.descriptors}
        [limits] = described["matching.uniqueness"].integer_range
        assert limits.from_value == 0 and limits.to_value > 10 and described["matching.uniqueness"].description
        assert described["matching.disparities"].read_only
        events = []
        node.create_subscription(ParameterEvent, "/parameter_events", events.append, 10)
        assert changed("matching.p1", 9).successful and changed("matching.paths", 4).successful
        limit = time.monotonic() + 20
        while present("matching.p1", "matching.paths") != [9, "4"]:
            assert time.monotonic() < limit, present("matching.p1", "matching.paths")
        while not any(p.name == "matching.p1" for e in events if e.node == own for p in e.changed_parameters):
            assert time.monotonic() < limit
            rclpy.spin_once(node, timeout_sec=0.1)
        both = SetParametersAtomically.Request(parameters=[Parameter(name="matching.paths", value=value(8)),
                                                           Parameter(name="matching.p1", value=value(-5))])
        answer = call(node, SetParametersAtomically, f"{own}/set_parameters_atomically", both).result
        assert not answer.successful and "p1" in answer.reason and present("matching.paths") == ["4"], answer
        assert changed("matching.p1", "auto").successful
        while present("matching.p1") != ["auto"]:
            assert time.monotonic() < limit
        for name, new, reason in [("matching.p1", -5, "p1"), ("matching.nothing", 1, "no parameter"),
                                  ("matching.disparities", 64, "recording")]:
            answer = changed(name, new)
            assert not answer.successful and reason in answer.reason, answer
        while "[matching] p1 =" not in (log := (tmp_path / "log").read_text()):
            assert time.monotonic() < limit, log
            time.sleep(0.1)

        answer = call(node, SetBool, f"{own}/record", SetBool.Request(data=False))
        assert answer.success, answer
        time.sleep(1)
        size = (tmp_path / "out.mkv").stat().st_size
        time.sleep(1)
        assert (tmp_path / "out.mkv").stat().st_size == size
        assert call(node, SetBool, f"{own}/record", SetBool.Request(data=True)).success
        answer = call(node, Trigger, f"{own}/snapshot", Trigger.Request())
        assert answer.success, answer
        shots = sorted(tmp_path.glob("stereod-*.png"))
        assert len(shots) == 2 and all(str(path) in answer.message for path in shots)
        assert np.asarray(Picture.open(shots[0])).shape == (72, 96)

        got = []
        node.create_subscription(DiagnosticArray, "/diagnostics", got.append, 10)
        limit = time.monotonic() + 20
        while not got and time.monotonic() < limit:
            rclpy.spin_once(node, timeout_sec=0.1)
        status = got[0].status[0]
        figures = {pair.key: pair.value for pair in status.values}
        assert status.name == "stereod" and int(figures["matched pairs"]) > 0
    finally:
        end(program)
