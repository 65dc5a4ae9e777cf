"""Prints the frames and the translation of the first message of /tf_static, received by Cyclone DDS."""

import time

from dds import LATCHED, TFMessage, places, reader

transforms = reader("/tf_static", TFMessage, LATCHED)
while not (messages := transforms.take()):
    time.sleep(0.05)
upright, transform = places(messages[0])
assert upright[:2] == ["stereo_link", "left_optical_frame"]
outer, inner, moved = transform
print(outer, inner, *moved)
