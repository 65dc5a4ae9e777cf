"""A detector by Cyclone DDS: a person (and, less likely, a dog) in the middle of every image of the width and height that
are given, after a message that makes no sense. Prints what comes back once the person has a distance, and the transforms
that came until then, as JSON."""

import json
import sys
import time

from dds import (LATCHED, RELIABLE, SENSOR, BoundingBox2D, Detection2D, Detection2DArray, Detection3DArray,
                 ObjectHypothesis, ObjectHypothesisWithPose, Point2D, Pose2D, TFMessage, places, reader, writer)

WIDTH, HEIGHT = map(int, sys.argv[1:])
CLASSES = [("dog", 0.25), ("person", 0.75)]
obstacles = reader("/obstacles", Detection3DArray, SENSOR)
fixed, moving = reader("/tf_static", TFMessage, LATCHED), reader("/tf", TFMessage, RELIABLE)
detections = writer("/detections", Detection2DArray, RELIABLE)
found = {"static": [], "moving": [], "things": []}
size, wrong = [WIDTH / 2, HEIGHT / 2], 0
while not found["things"]:
    for key, source in ("static", fixed), ("moving", moving):
        found[key] += [place for message in source.take() for place in places(message)]
    for message in obstacles.take():
        for each in message.detections:
            best, at = each.results[0], each.results[0].pose.pose.position
            found["things"].append({
                "stamp": message.header.stamp.sec + message.header.stamp.nanosec / 1e9,
                "frame": message.header.frame_id,
                "label": best.hypothesis.class_id,
                "score": best.hypothesis.score,
                "id": each.id,
                "position_m": [at.x, at.y, at.z],
                "size_m": [each.bbox.size.x, each.bbox.size.y, each.bbox.size.z],
            })
        results = [ObjectHypothesisWithPose(ObjectHypothesis(*known)) for known in CLASSES]
        # The first ones have no area.
        width, wrong = (0.0, wrong + 1) if wrong < 3 else (size[0], wrong)
        box = BoundingBox2D(Pose2D(Point2D(WIDTH / 2, HEIGHT / 2), 0.0), width, size[1])
        detections.write(Detection2DArray(message.header, [Detection2D(message.header, results, box, "7")]))
    time.sleep(0.02)
print(json.dumps(found))
