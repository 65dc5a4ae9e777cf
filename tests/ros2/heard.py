"""Prints how many camera_info messages of /front arrive within so many seconds, at most 5."""

import sys
import time

import rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo

rclpy.init()
node, heard = rclpy.create_node("listener"), []
node.create_subscription(CameraInfo, "/front/left/camera_info", heard.append, qos_profile_sensor_data)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and len(heard) < 5:
    rclpy.spin_once(node, timeout_sec=0.1)
print(len(heard))
