"""A participant of Cyclone DDS in the test's domain, on this machine alone, and types of ROS 2 in its words."""

import os
from dataclasses import dataclass, field

# Discovery on this machine only.
os.environ["CYCLONEDDS_URI"] = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
</General><Discovery><Peers><Peer address="127.0.0.1"/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>
</Domain></CycloneDDS>"""

from cyclonedds.core import Policy, Qos  # noqa: E402
from cyclonedds.domain import DomainParticipant  # noqa: E402
from cyclonedds.idl import IdlStruct  # noqa: E402
from cyclonedds.idl.types import array, float64, int32, sequence, uint32  # noqa: E402
from cyclonedds.pub import DataWriter  # noqa: E402
from cyclonedds.sub import DataReader  # noqa: E402
from cyclonedds.topic import Topic  # noqa: E402


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32 = 0
    nanosec: uint32 = 0


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


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


# A geometry_msgs/Point is a vector on the wire.
@dataclass
class Pose(IdlStruct, typename="geometry_msgs::msg::dds_::Pose_"):
    position: Vector3 = field(default_factory=Vector3)
    orientation: Quaternion = field(default_factory=Quaternion)


@dataclass
class PoseWithCovariance(IdlStruct, typename="geometry_msgs::msg::dds_::PoseWithCovariance_"):
    pose: Pose = field(default_factory=Pose)
    covariance: array[float64, 36] = field(default_factory=lambda: [0.0] * 36)


@dataclass
class ObjectHypothesis(IdlStruct, typename="vision_msgs::msg::dds_::ObjectHypothesis_"):
    class_id: str
    score: float64


@dataclass
class ObjectHypothesisWithPose(IdlStruct, typename="vision_msgs::msg::dds_::ObjectHypothesisWithPose_"):
    hypothesis: ObjectHypothesis
    pose: PoseWithCovariance = field(default_factory=PoseWithCovariance)


@dataclass
class Point2D(IdlStruct, typename="vision_msgs::msg::dds_::Point2D_"):
    x: float64
    y: float64


@dataclass
class Pose2D(IdlStruct, typename="vision_msgs::msg::dds_::Pose2D_"):
    position: Point2D
    theta: float64


@dataclass
class BoundingBox2D(IdlStruct, typename="vision_msgs::msg::dds_::BoundingBox2D_"):
    center: Pose2D
    size_x: float64
    size_y: float64


@dataclass
class BoundingBox3D(IdlStruct, typename="vision_msgs::msg::dds_::BoundingBox3D_"):
    center: Pose
    size: Vector3


def detections(kind, box):
    """The type of a detection with such a box, and that of a message with several."""

    @dataclass
    class Detection(IdlStruct, typename=f"vision_msgs::msg::dds_::{kind}_"):
        header: Header
        results: sequence[ObjectHypothesisWithPose]
        bbox: box
        id: str

    @dataclass
    class Array(IdlStruct, typename=f"vision_msgs::msg::dds_::{kind}Array_"):
        header: Header
        detections: sequence[Detection]

    return Detection, Array


Detection2D, Detection2DArray = detections("Detection2D", BoundingBox2D)
Detection3D, Detection3DArray = detections("Detection3D", BoundingBox3D)
participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
RELIABLE = Qos(Policy.Reliability.Reliable(0), Policy.History.KeepLast(10))
LATCHED = Qos(Policy.Reliability.Reliable(0), Policy.Durability.TransientLocal, Policy.History.KeepLast(10))
SENSOR = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(5))


def reader(name, kind, qos):
    return DataReader(participant, Topic(participant, f"rt{name}", kind, qos=qos), qos=qos)


def writer(name, kind, qos):
    return DataWriter(participant, Topic(participant, f"rt{name}", kind, qos=qos), qos=qos)


def places(message):
    """Outer and inner frame of each transform, and the inner one's place."""
    found = [(each.header.frame_id, each.child_frame_id, each.transform.translation) for each in message.transforms]
    return [[outer, inner, [at.x, at.y, at.z]] for outer, inner, at in found]
