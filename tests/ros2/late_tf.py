"""Prints the frames and the translation of the first message of /tf_static, received by Cyclone DDS."""

import os
import time
from dataclasses import dataclass

# Discovery on this machine only.
os.environ["CYCLONEDDS_URI"] = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
</General><Discovery><Peers><Peer address="127.0.0.1"/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>
</Domain></CycloneDDS>"""

from cyclonedds.core import Policy, Qos  # noqa: E402
from cyclonedds.domain import DomainParticipant  # noqa: E402
from cyclonedds.idl import IdlStruct  # noqa: E402
from cyclonedds.idl.types import float64, int32, sequence, uint32  # noqa: E402
from cyclonedds.sub import DataReader  # noqa: E402
from cyclonedds.topic import Topic  # noqa: E402


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time
    frame_id: str


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float64
    y: float64
    z: float64
    w: float64


@dataclass
class Transform(IdlStruct, typename="geometry_msgs::msg::dds_::Transform_"):
    translation: Vector3
    rotation: Quaternion


@dataclass
class TransformStamped(IdlStruct, typename="geometry_msgs::msg::dds_::TransformStamped_"):
    header: Header
    child_frame_id: str
    transform: Transform


@dataclass
class TFMessage(IdlStruct, typename="tf2_msgs::msg::dds_::TFMessage_"):
    transforms: sequence[TransformStamped]


participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
qos = Qos(Policy.Reliability.Reliable(0), Policy.Durability.TransientLocal, Policy.History.KeepLast(10))
reader = DataReader(participant, Topic(participant, "rt/tf_static", TFMessage, qos=qos), qos=qos)
while not (messages := reader.take()):
    time.sleep(0.05)
upright, transform = messages[0].transforms
assert (upright.header.frame_id, upright.child_frame_id) == ("stereo_link", "left_optical_frame")
moved = transform.transform.translation
print(transform.header.frame_id, transform.child_frame_id, moved.x, moved.y, moved.z)
