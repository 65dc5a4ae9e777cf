"""Prints the transforms of the first messages of /tf_static and /tf, received by Cyclone DDS, as JSON."""

import json
import time

from dds import LATCHED, RELIABLE, TFMessage, places, reader

readers = {"static": reader("/tf_static", TFMessage, LATCHED), "moving": reader("/tf", TFMessage, RELIABLE)}
found = {}
while len(found) < len(readers):
    for key, source in readers.items():
        for message in source.take():
            found.setdefault(key, places(message))
    time.sleep(0.02)
print(json.dumps(found))
