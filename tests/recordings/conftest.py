"""Recordings of a few pairs by programs that are not ours, and the same pairs as PNG images."""

import base64
import io
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import foxglove
import numpy as np
import pytest
from foxglove.channels import (CameraCalibrationChannel, CompressedImageChannel, CompressedVideoChannel,
                               RawImageChannel)
from foxglove.messages import CameraCalibration, CompressedImage, CompressedVideo, RawImage, Timestamp
from mcap.writer import CompressionType
from mcap.writer import Writer as PlainWriter
from mcap_ros2.writer import Writer as McapWriter
from PIL import Image
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

PROGRAM = os.environ["STEREOD_TEST_PROGRAM"]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
EUROC, OAKD = DATA / "euroc_v1_01", DATA / "oakd_patio" / "rectified"
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("STEREOD_")}
VIEWS = ["left", "right"]
# Rectified cameras of the generated pairs.
FOCAL, BASELINE = 300.0, 0.1
START, PERIOD = 1_403_715_273_262_142_976, 50_000_000


def stereod(*arguments, folder, status=0):
    """Runs the program, and returns its standard output and error."""
    command = [PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def generated(width=192, height=120, count=6):
    """Pairs of a textured wall that comes nearer."""
    random = np.random.default_rng(5)
    rough = random.integers(0, 256, (height // 3 + 1, width // 3 + 40), np.uint8)
    texture = np.kron(rough, np.ones((3, 3), np.uint8))[:height]
    return [(texture[:, :width], texture[:, 6 + n : 6 + n + width]) for n in range(count)]


def euroc():
    """Raw pairs of EuRoC."""
    def read(camera, path):
        return np.asarray(Image.open(EUROC / "png" / camera / path.name).convert("L"))

    return [(read("cam0", path), read("cam1", path)) for path in sorted((EUROC / "png" / "cam0").glob("*.png"))]


def write_pngs(folder, pairs):
    for eye, view in enumerate(VIEWS):
        (folder / view).mkdir(parents=True)
        for number, pair in enumerate(pairs):
            Image.fromarray(pair[eye]).save(folder / view / f"{number:06}.png")


def stamp_of(number, eye):
    """The right view's clock is 40 us late."""
    return START + number * PERIOD + eye * 40_000


def camera_infos(size):
    """Fields of CameraInfo of the generated pairs, and of EuRoC's calibration of ROS, by names of ROS 2."""
    width, height = size
    k = [FOCAL, 0, width / 2, 0, FOCAL, height / 2, 0, 0, 1]
    p = [FOCAL, 0, width / 2, 0, 0, FOCAL, height / 2, 0, 0, 0, 1, 0]
    right = [*p[:3], -FOCAL * BASELINE, *p[4:]]
    eye = [1.0, 0, 0, 0, 1, 0, 0, 0, 1]
    return [{"distortion_model": "plumb_bob", "d": [0.0] * 5, "k": k, "r": eye, "p": p} for p in (p, right)]


def euroc_infos():
    """The same from left.yaml and right.yaml."""
    def read(path):
        lines, values = path.read_text().splitlines(), {}
        for number, line in enumerate(lines):
            if line.startswith("distortion_model"):
                values["distortion_model"] = line.split(":")[1].strip()
            for name, key in (("camera_matrix", "k"), ("distortion_coefficients", "d"),
                              ("rectification_matrix", "r"), ("projection_matrix", "p")):
                if line.startswith(name):
                    text = " ".join(lines[number + 1 :])
                    text = text[text.index("[") + 1 : text.index("]")]
                    values[key] = [float(value) for value in text.split(",")]
        return values

    return [read(EUROC / f"{view}.yaml") for view in VIEWS]


def messages_of(pairs, infos, name, encode, compressed):
    """Topic, type, time of recording and fields of every message: the right view arrives 30 ms late. `compressed` may be
    the name of the format of PNG files."""
    for number, pair in enumerate(pairs):
        for eye, view in enumerate(VIEWS):
            stamp, picture = stamp_of(number, eye), pair[eye]
            header = {"stamp": stamp, "frame_id": f"{view}_optical"}
            log = stamp + eye * 30_000_000
            if infos:
                size = {"height": picture.shape[0], "width": picture.shape[1]}
                yield f"/{view}/camera_info", "CameraInfo", log, {"header": header, **size, **infos[eye]}
            if compressed:
                yield (f"/{view}/{name}/compressed", "CompressedImage", log,
                       {"header": header, "format": "mono8; png compressed" if compressed is True else compressed,
                        "data": png(picture)})
            else:
                encoding, data, step = encode(picture)
                yield (f"/{view}/{name}", "Image", log,
                       {"header": header, "height": picture.shape[0], "width": picture.shape[1],
                        "encoding": encoding, "is_bigendian": 0, "step": step, "data": data})


def png(picture):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    return np.frombuffer(file.getvalue(), np.uint8)


def mono(picture):
    return "mono8", np.ascontiguousarray(picture).reshape(-1), picture.shape[1]


class Store:
    """Types of a version of ROS, and messages of them."""

    def __init__(self, store, is_ros1):
        self.store, self.is_ros1 = get_typestore(store), is_ros1

    def make(self, kind, fields):
        types = self.store.types
        header = fields["header"]
        stamp = types["builtin_interfaces/msg/Time"](sec=header["stamp"] // 10**9, nanosec=header["stamp"] % 10**9)
        sequence = {"seq": 0} if self.is_ros1 else {}
        made = dict(fields, header=types["std_msgs/msg/Header"](stamp=stamp, frame_id=header["frame_id"], **sequence))
        if kind == "CameraInfo":
            roi = {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False}
            made |= {"binning_x": 0, "binning_y": 0, "roi": types["sensor_msgs/msg/RegionOfInterest"](**roi)}
            for key in "dkrp":
                made[key.upper() if self.is_ros1 else key] = np.asarray(made.pop(key), np.float64)
        return types[f"sensor_msgs/msg/{kind}"](**made)


def write_rosbags(writer, store, messages):
    connections = {}
    with writer:
        for topic, kind, log, fields in messages:
            name = f"sensor_msgs/msg/{kind}"
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, name, typestore=store.store)
            serialise = store.store.serialize_ros1 if store.is_ros1 else store.store.serialize_cdr
            writer.write(connections[topic], log, serialise(store.make(kind, fields), name))


def write_mcap(path, messages, compression):
    """Writes by mcap-ros2-support."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    writer = McapWriter(str(path), chunk_size=100_000, compression=compression)
    schemas = {}
    for topic, kind, log, fields in messages:
        if kind not in schemas:
            text, _ = store.generate_msgdef(f"sensor_msgs/msg/{kind}", ros_version=2)
            schemas[kind] = writer.register_msgdef(f"sensor_msgs/msg/{kind}", text)
        header = fields["header"]
        stamp = {"sec": header["stamp"] // 10**9, "nanosec": header["stamp"] % 10**9}
        made = dict(fields, header={"stamp": stamp, "frame_id": header["frame_id"]})
        if "data" in made:
            made["data"] = made["data"].tobytes()
        if kind == "CameraInfo":
            roi = {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False}
            made |= {"binning_x": 0, "binning_y": 0, "roi": roi}
        writer.write_message(topic, schemas[kind], made, log_time=log, publish_time=log)
    writer.finish()


MODE, FORMAT = rosbag2.CompressionMode, rosbag2.CompressionFormat
ROS1, ROS2 = Store(Stores.ROS1_NOETIC, True), Store(Stores.ROS2_HUMBLE, False)


def bag1(compression=None):
    def write(folder, messages):
        writer = rosbag1.Writer(folder / "drive.bag")
        if compression:
            writer.set_compression(compression)
        write_rosbags(writer, ROS1, messages)
        return folder / "drive.bag"
    return write


def bag2(plugin, mode=None):
    def write(folder, messages):
        writer = rosbag2.Writer(folder / "drive", version=9, storage_plugin=plugin)
        if mode:
            writer.set_compression(mode, FORMAT.ZSTD)
        write_rosbags(writer, ROS2, messages)
        return folder / "drive"
    return write


def mcap(compression):
    def write(folder, messages):
        write_mcap(folder / "drive.mcap", messages, compression)
        return folder / "drive.mcap"
    return write


RECORDERS = {
    "bag": bag1(),
    "bag-bz2": bag1(rosbag1.Writer.CompressionFormat.BZ2),
    "bag-lz4": bag1(rosbag1.Writer.CompressionFormat.LZ4),
    "db3": bag2(rosbag2.StoragePlugin.SQLITE3),
    "db3-messages": bag2(rosbag2.StoragePlugin.SQLITE3, MODE.MESSAGE),
    "db3-file": bag2(rosbag2.StoragePlugin.SQLITE3, MODE.FILE),
    "rosbag2-mcap": bag2(rosbag2.StoragePlugin.MCAP),
    "mcap-zstd": mcap(CompressionType.ZSTD),
    "mcap-lz4": mcap(CompressionType.LZ4),
    "mcap": mcap(CompressionType.NONE),
}


ENCODERS = {
    "h264": "x264enc bframes=0 key-int-max=3",
    "h265": "x265enc key-int-max=3 option-string=bframes=0",
}


def encode(folder, images, codec):
    """The access units of a video, and the same video as a file: PERIOD apart."""
    folder.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:06}.png")
    stream = f"{codec}parse config-interval=-1 ! video/x-{codec},stream-format=byte-stream,alignment=au"
    pipeline = (f"multifilesrc location={folder}/%06d.png caps=image/png,framerate=20/1 ! pngdec ! videoconvert "
                f"! video/x-raw,format=I420 ! {ENCODERS[codec]} ! {stream} ! tee name=t "
                f"t. ! queue ! multifilesink location={folder}/%06d.unit "
                f"t. ! queue ! {codec}parse ! matroskamux ! filesink location={folder}/video.mkv")
    subprocess.run(["gst-launch-1.0", "-q", *pipeline.split()], check=True, timeout=120, env=ENVIRONMENT)
    units = [path.read_bytes() for path in sorted(folder.glob("*.unit"))]
    assert len(units) == len(images)
    return units, folder / "video.mkv"


def video_messages(videos):
    """Topic, time of recording, stamp and unit of every message of both views."""
    for number, pair in enumerate(zip(*videos, strict=True)):
        for eye, view in enumerate(VIEWS):
            stamp = stamp_of(number, eye)
            yield f"/{view}/image_rect/video", stamp + eye * 30_000_000, stamp, pair[eye]


COMPRESSED_VIDEO = """builtin_interfaces/Time timestamp
string frame_id
uint8[] data
string format
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""


def ros_video(path, videos, codec):
    """Writes foxglove_msgs/msg/CompressedVideo by mcap-ros2-support."""
    writer = McapWriter(str(path))
    schema = writer.register_msgdef("foxglove_msgs/msg/CompressedVideo", COMPRESSED_VIDEO)
    for topic, log, stamp, unit in video_messages(videos):
        time = {"sec": stamp // 10**9, "nanosec": stamp % 10**9}
        made = {"timestamp": time, "frame_id": "optical", "data": unit, "format": codec}
        writer.write_message(topic, schema, made, log_time=log, publish_time=log)
    writer.finish()


TIME = "=" * 80 + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
HEADER = "=" * 80 + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n" + TIME
COMPRESSED_IMAGE = "std_msgs/Header header\nstring format\nuint8[] data\n" + HEADER
PACKET = """std_msgs/Header header
int32 width
int32 height
string encoding
uint64 pts
uint8 flags
bool is_bigendian
uint8[] data
""" + HEADER


def headed_video(path, videos, kind, text, fields):
    writer = McapWriter(str(path))
    schema = writer.register_msgdef(kind, text)
    for number, (topic, log, stamp, unit) in enumerate(video_messages(videos)):
        header = {"stamp": {"sec": stamp // 10**9, "nanosec": stamp % 10**9}, "frame_id": "optical"}
        made = {"header": header, "data": unit, **fields(number)}
        writer.write_message(topic, schema, made, log_time=log, publish_time=log)
    writer.finish()


def image_video(path, videos, codec):
    """Writes frames of a video as sensor_msgs/msg/CompressedImage, as some drivers do."""
    headed_video(path, videos, "sensor_msgs/msg/CompressedImage", COMPRESSED_IMAGE, lambda _: {"format": codec})


def packet_video(path, videos, codec):
    """Writes packets of ffmpeg_image_transport."""
    encoder = {"h264": "libx264", "h265": "hevc_nvenc"}[codec]
    fields = lambda n: {"width": 192, "height": 120, "encoding": encoder, "pts": n, "flags": 1, "is_bigendian": False}
    headed_video(path, videos, "ffmpeg_image_transport_msgs/msg/FFMPEGPacket", PACKET, fields)


def foxglove_video(path, videos, codec):
    """Writes foxglove.CompressedVideo in Protocol Buffers by Foxglove's own library."""
    context = foxglove.Context()
    with foxglove.open_mcap(path, context=context):
        channels = {}
        for topic, log, stamp, unit in video_messages(videos):
            if topic not in channels:
                channels[topic] = CompressedVideoChannel(topic, context=context)
            time = Timestamp(sec=stamp // 10**9, nsec=stamp % 10**9)
            made = CompressedVideo(timestamp=time, frame_id="optical", data=unit, format=codec)
            channels[topic].log(made, log_time=log)


def foxglove_images(path, pairs, infos, compressed):
    """Writes foxglove.RawImage or CompressedImage, and CameraCalibration, by Foxglove's own library."""
    context = foxglove.Context()
    with foxglove.open_mcap(path, context=context):
        channels = {}

        def log(kind, topic, message, at):
            if topic not in channels:
                channels[topic] = kind(topic, context=context)
            channels[topic].log(message, log_time=at)

        for number, pair in enumerate(pairs):
            for eye, view in enumerate(VIEWS):
                stamp, (height, width) = stamp_of(number, eye), pair[eye].shape
                time = Timestamp(sec=stamp // 10**9, nsec=stamp % 10**9)
                info = {key.upper(): value for key, value in infos[eye].items() if key in "dkrp"}
                calibration = CameraCalibration(timestamp=time, width=width, height=height,
                                                distortion_model="plumb_bob", **info)
                log(CameraCalibrationChannel, f"/{view}/calibration", calibration, stamp)
                if compressed:
                    image = CompressedImage(timestamp=time, data=png(pair[eye]).tobytes(), format="png")
                    log(CompressedImageChannel, f"/{view}/image_rect", image, stamp)
                else:
                    image = RawImage(timestamp=time, width=width, height=height, encoding="mono8", step=width,
                                     data=np.ascontiguousarray(pair[eye]).tobytes())
                    log(RawImageChannel, f"/{view}/image_rect", image, stamp)


SERIAL = 40735594


def svo2(path, units, size):
    """Writes ZED's .svo2 by the layout of RadarML/open-svo2, docs/format.md."""
    width, height = size
    writer = PlainWriter(str(path))
    writer.start(profile="", library="test")
    names = ["svo_header", f"Camera_SN{SERIAL}/side_by_side", f"Camera_SN{SERIAL}/sensors", "svo_footer"]
    channels = {name: writer.register_channel(name, "", 0) for name in names}

    def write(name, time, data):
        writer.add_message(channels[name], time, data, time)

    header = struct.pack("<9I12f3If7I", width, height, SERIAL, 20, 0, 8, 0, 1000, 2001, *range(12), 0, 0, 0, 1.0,
                         5, 0, 0, 0, 0, 1, 0)
    assert len(header) == 128
    head = {"header": base64.b64encode(header).decode(), "zed_sdk_version": "5.0.0", "imu_frequency_hz": 200.0}
    write(names[0], START, json.dumps(head).encode())
    for number, unit in enumerate(units):
        stamp = stamp_of(number, 0)
        footer = struct.pack("<IIIiiiQIiiIi4x", width, height, 0x5C002C00, 1, 2, -1, stamp, len(unit), 0, 0, number, 7)
        assert len(footer) == 56
        lengths = struct.pack("<II", 4 + len(unit) + len(footer), len(unit))
        # Written later than captured.
        write(names[1], stamp + 5_000_000, lengths + unit + footer)
        write(names[2], stamp + 6_000_000, bytes(24))
    write(names[3], START + len(units) * PERIOD, json.dumps({names[1]: ""}).encode())
    writer.finish()


def maps(folder, *source):
    """The disparity images of a run, by name."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    _, log = stereod("run", *source, "-d", "64", "--engine", "cpu", "--headless", "--pictures", out, folder=folder)
    return {path.name: np.asarray(Image.open(path)) for path in sorted(out.glob("*.png"))}, log


@pytest.fixture(scope="session")
def pairs():
    return generated()


@pytest.fixture(scope="session")
def plain(pairs, tmp_path_factory):
    """The maps of the generated pairs from PNG images."""
    folder = tmp_path_factory.mktemp("plain")
    write_pngs(folder, pairs)
    return maps(folder, "--left", folder / "left/%06d.png", "--right", folder / "right/%06d.png")[0]


def same(found, expected):
    assert len(expected) > 0 and found.keys() == expected.keys()
    for name, image in expected.items():
        assert np.array_equal(found[name], image), name
