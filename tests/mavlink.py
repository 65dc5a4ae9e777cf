#!/usr/bin/env python3
"""Plays the autopilots that listen to `stereod_obstacles::mavlink`: decodes by pymavlink, believes by their rules.

Listens on a UDP port of this machine until its standard input ends. Each line of its output is JSON: first the port;
then each message with what both autopilots believe after it; silence of 0.5 s.
The rules are those of ArduPilot's AP_Proximity_MAV.cpp and PX4's CollisionPrevention.cpp.
"""

import json
import math
import os
import select
import struct
import sys
import time

os.environ["MAVLINK20"] = "1"
os.environ["MAVLINK_DIALECT"] = "ardupilotmega"
from pymavlink import mavutil  # noqa: E402

BODY_FRD = 12
UNKNOWN = 65535
TIMEOUT_S = 0.5


class ArduPilot:
    """Boundary of 5 layers and 8 sectors; the obstacles of OBSTACLE_DISTANCE are in the middle layer."""

    def __init__(self):
        self.faces = {}
        self.heard_at = None
        self.stamp = None

    @staticmethod
    def sector(yaw):
        return int(((yaw + 22.5) % 360) / 45)

    def ring(self, message, now):
        step = message.increment_f or message.increment
        if not step:
            return
        self.heard_at = now
        last = None
        for index in range(min(int(360 / abs(step) + 0.5), 72)):
            distance = message.distances[index]
            if distance in (0, UNKNOWN) or not message.min_distance <= distance <= message.max_distance:
                continue
            face = (2, self.sector(index * step + message.angle_offset))
            if face != last:
                self.faces.pop(face, None)
                last = face
            self.faces[face] = min(self.faces.get(face, math.inf), distance / 100)
        # Faces without a new distance end by their own timeout, which here is at once.
        seen = {
            self.sector(index * step + message.angle_offset)
            for index, distance in enumerate(message.distances)
            if distance not in (0, UNKNOWN) and message.min_distance <= distance <= message.max_distance
        }
        for sector in set(range(8)) - seen:
            self.faces.pop((2, sector), None)

    def point(self, message, now):
        late = self.heard_at is None or now - self.heard_at > 0.05
        is_new = message.time_boot_ms != self.stamp or late
        self.heard_at, self.stamp = now, message.time_boot_ms
        if message.frame != BODY_FRD:
            return
        if is_new:
            self.faces = {}
        ahead, right, down = message.x, message.y, message.z
        length = math.sqrt(ahead**2 + right**2 + down**2)
        if length == 0 or not message.min_distance <= length <= message.max_distance:
            return
        pitch = math.degrees(math.atan2(-down, math.hypot(ahead, right)))
        layer = int((min(max(pitch, -75.0), 74.9) + 75) / 30)
        face = (layer, self.sector(math.degrees(math.atan2(right, ahead))))
        self.faces[face] = min(self.faces.get(face, math.inf), length)

    def forward(self, message, now):
        if message.orientation > 7:
            return
        self.heard_at = now
        face = (2, message.orientation)
        if message.min_distance <= message.current_distance <= message.max_distance:
            self.faces[face] = message.current_distance / 100
        else:
            self.faces.pop(face, None)

    def belief(self, now):
        """Metres by layer and sector, None for nothing; or None without data."""
        if self.heard_at is None or now - self.heard_at > TIMEOUT_S:
            return None
        return [[self.faces.get((layer, sector)) for sector in range(8)] for layer in range(5)]


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class Px4:
    """Map of 72 bins of 5 degrees in centimetres, clockwise from ahead."""

    def __init__(self):
        self.bins = [UNKNOWN] * 72
        self.ranges = [0] * 72
        self.times = [-math.inf] * 72
        self.errors = []

    def enter(self, index, reach, reading, now):
        old, old_reach = self.bins[index], self.ranges[index]
        if reading < reach:
            takes = (old < old_reach and reach <= old_reach) or old >= old_reach
        else:
            takes = (old >= old_reach and reach >= old_reach) or (old < old_reach and reach == old_reach)
        if takes:
            self.bins[index], self.ranges[index], self.times[index] = reading, reach, now

    def ring(self, message, now):
        if message.frame not in (0, 1, BODY_FRD):
            self.errors.append(f"unsupported frame {message.frame}")
            return
        step = message.increment_f or float(message.increment)
        factor = single(1 / single(step))
        for index in range(72):
            place = math.ceil(single(single((index * 5 - message.angle_offset) % 360) * factor))
            if place >= 72:
                self.errors.append(f"element {place} is beyond the array")
            elif message.distances[place] != UNKNOWN:
                self.enter(index, message.max_distance, message.distances[place], now)

    def forward(self, message, now):
        reading = min(message.current_distance, message.max_distance)
        if message.orientation in (24, 25) or reading <= message.min_distance:
            return
        yaw, half = message.orientation * 45, math.degrees(message.horizontal_fov / 2)
        ends = [math.floor((yaw - half) / 5), math.floor((yaw + half) / 5)]
        first, last = (end + 1 if end < 0 else end for end in ends)
        for index in range(first, last + 1):
            self.enter(index % 72, message.max_distance, reading, now)

    def belief(self, now):
        """What holds in each bin: centimetres, "clear" or "unknown"."""
        def state(index):
            distance = self.bins[index]
            if distance == UNKNOWN or now - self.times[index] > TIMEOUT_S:
                return "unknown"
            return distance if distance < self.ranges[index] else "clear"

        return [state(index) for index in range(72)]


def strict(value):
    """Returns a value for JSON, which has no NaN."""
    if isinstance(value, list):
        return [strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(message):
    fields = {name: strict(value) for name, value in message.to_dict().items() if name != "mavpackettype"}
    return {"message": message.get_type(), "system": message.get_srcSystem(),
            "component": message.get_srcComponent(), "fields": fields}


def tell(line):
    print(json.dumps(line), flush=True)


def open_link():
    """Returns the link of this autopilot, and tells its port."""
    link = mavutil.mavlink_connection("udpin:127.0.0.1:0", source_system=1, source_component=1)
    tell({"port": link.port.getsockname()[1]})
    return link


def answer(link, message, booted):
    if message.get_type() == "TIMESYNC" and message.tc1 == 0:
        now = time.time_ns() - booted
        link.mav.timesync_send(now, message.ts1)
        # Asks in turn, as autopilots do.
        link.mav.timesync_send(0, now)


def believe(ardupilot, px4, message, now):
    kind = message.get_type()
    takers = {"OBSTACLE_DISTANCE": "ring", "OBSTACLE_DISTANCE_3D": "point", "DISTANCE_SENSOR": "forward"}
    for autopilot in (ardupilot, px4):
        take = getattr(autopilot, takers.get(kind, ""), None)
        if take:
            take(message, now)


def main():
    link = open_link()
    # Started a thousand seconds ago.
    booted = time.time_ns() - 1000 * 10**9
    ardupilot, px4 = ArduPilot(), Px4()
    is_silent = True
    while True:
        ready, _, _ = select.select([link.fd, sys.stdin], [], [], 0.1)
        if sys.stdin in ready and not os.read(0, 1):
            return
        while (message := link.recv_msg()) is not None:
            now = time.monotonic()
            answer(link, message, booted)
            believe(ardupilot, px4, message, now)
            tell(plain(message) | {"at": now, "ardupilot": ardupilot.belief(now), "px4": px4.belief(now),
                                   "errors": px4.errors})
            if message.get_type() in ("OBSTACLE_DISTANCE", "OBSTACLE_DISTANCE_3D", "DISTANCE_SENSOR"):
                is_silent = False
        now = time.monotonic()
        if not is_silent and ardupilot.belief(now) is None:
            is_silent = True
            tell({"message": "SILENCE", "ardupilot": None, "px4": px4.belief(now), "errors": px4.errors})


if __name__ == "__main__":
    main()
