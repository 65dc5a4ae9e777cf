"""Serves two cameras over RTSP on loopback until its input ends.

Both send the same numbered frames, one every 100 ms (tests/common/numbered_videos.rs reads them). The address of
the right one leads through a relay that delays all it sends by 80 ms. Prints both addresses.
"""

import queue
import socket
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

WIDTH, HEIGHT, PERIOD, DELAY = 128, 64, 0.1, 0.08
PIPELINE = (
    "( appsrc name=in is-live=true do-timestamp=true format=time "
    f"caps=video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate=10/1 ! videoconvert "
    "! video/x-raw,format=I420 ! jpegenc ! rtpjpegpay name=pay0 )"
)


def frame(left, number):
    bits = [235 if number >> bit & 1 else 16 for bit in range(8)]
    row = bytes(bits[x // 16] for x in range(WIDTH))
    return row * (HEIGHT // 2) + bytes([235 if left else 16]) * (WIDTH * (HEIGHT // 2))


def send_frames(inputs):
    """Pushes the same number into every camera that is watched."""
    number = 0
    while True:
        for left, source in list(inputs):
            source.emit("push-buffer", Gst.Buffer.new_wrapped(frame(left, number)))
        number = (number + 1) % 256
        time.sleep(PERIOD - time.monotonic() % PERIOD)


def add_camera(server, inputs, path, left):
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(PIPELINE)

    def configure(_factory, media):
        inputs.append((left, media.get_element().get_by_name("in")))

    factory.connect("media-configure", configure)
    server.get_mount_points().add_factory(path, factory)


def pass_on(source, target, delay):
    """Copies one direction of a connection, each piece `delay` seconds later."""
    pieces = queue.Queue()

    def read():
        while piece := source.recv(65536):
            pieces.put((time.monotonic() + delay, piece))
        pieces.put((0, b""))

    threading.Thread(target=read, daemon=True).start()
    while True:
        due, piece = pieces.get()
        if not piece:
            return target.close()
        time.sleep(max(0, due - time.monotonic()))
        target.sendall(piece)


def relay(listener, port):
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        for way in ((client, server, 0), (server, client, DELAY)):
            threading.Thread(target=pass_on, args=way, daemon=True).start()


def main():
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service("0")
    inputs = []
    add_camera(server, inputs, "/left", True)
    add_camera(server, inputs, "/right", False)
    server.attach(None)
    port = server.get_bound_port()
    listener = socket.create_server(("127.0.0.1", 0))
    for target, args in (
        (GLib.MainLoop().run, ()),
        (send_frames, (inputs,)),
        (relay, (listener, port)),
    ):
        threading.Thread(target=target, args=args, daemon=True).start()
    late = listener.getsockname()[1]
    print(f"rtspt://127.0.0.1:{port}/left rtspt://127.0.0.1:{late}/right", flush=True)
    sys.stdin.read()


main()
