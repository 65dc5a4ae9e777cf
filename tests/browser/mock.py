"""Small server that speaks the live page's protocol with a synthetic scene of known numbers."""

import asyncio
import io
import json
import struct
import threading
import time
import zlib
from pathlib import Path

import numpy as np
from aiohttp import WSMsgType, web
from PIL import Image

FILES = Path(__file__).resolve().parents[2] / "src" / "serve" / "live"
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
       "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
UNKNOWN = -32768
TOKEN = "let-me-in"
WIDTH, HEIGHT = 320, 240
GEOMETRY = {"focal_px": 300.0, "baseline_m": 0.12, "centre_x_px": 159.5, "centre_y_px": 119.5,
            "right_centre_x_px": 157.5}


def turbo():
    """Polynomial approximation of Google's Turbo (Mikhailov 2019), 256 colours."""
    x = np.linspace(0, 1, 256)
    powers = np.stack([x ** i for i in range(6)])
    factors = np.array([[0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943],
                        [0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604],
                        [0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973]])
    return np.clip(factors @ powers * 255, 0, 255).round().astype(int).T.tolist()


def grey():
    """Black to white."""
    return [[i, i, i] for i in range(256)]


TABLES = {"turbo": turbo(), "grey": grey()}


def scene():
    """Returns disparity (1/16 px), confidence and left image: a wall, a floor, a ball and a hole."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    disparity = 160 + x // 4
    floor = y > 170
    disparity[floor] = (200 + 8 * (y - 170) - x // 20)[floor]
    ball = (x - 110) ** 2 + (y - 120) ** 2
    inside = ball < 55 ** 2
    disparity[inside] = (640 + 4 * np.sqrt(np.maximum(55 ** 2 - ball, 0)))[inside].astype(int)
    disparity[(x < 30)] = UNKNOWN
    disparity[20:60, 220:280] = UNKNOWN
    confidence = np.where(disparity == UNKNOWN, 0, 1 + (x + 3 * y) % 255)
    rng = np.random.default_rng(1)
    image = 90 + 25 * rng.standard_normal((HEIGHT // 8, WIDTH // 8)).repeat(8, 0).repeat(8, 1)
    image = image[..., None] + np.zeros(3)
    image[floor] = np.where(((x // 20 + y // 12) % 2)[..., None], [70, 60, 50], [190, 180, 160])[floor]
    stripes = ((x - y) // 12 % 2)[..., None]
    image[inside] = np.where(stripes, [210, 90, 50], [240, 225, 200])[inside]
    return disparity.astype("<i2"), confidence.astype("u1"), np.clip(image, 0, 255).astype("u1")


def deflated(array):
    """Differences from the row above, the low bytes before the high ones, compressed."""
    bits = array.view(np.uint16 if array.itemsize == 2 else np.uint8)
    steps = np.diff(bits, axis=0, prepend=np.zeros((1, bits.shape[1]), bits.dtype))
    planes = steps.view(np.uint8).reshape(-1, array.itemsize).T
    return zlib.compress(planes.tobytes(), 1)


def knobs():
    """The tuning panel: every kind of knob, and a locked one."""
    number = {"low": 0, "high": 255, "step": 1, "word": None}
    return [
        {"section": "matching", "key": "cost", "group": "Cost", "label": "cost", "hint": "How alike two pixels are.",
         "value": "combined", "means": None, "locked": None, "kind": {"choice": ["combined", "census", "ad"]}},
        {"section": "matching", "key": "paths", "group": "Cost", "label": "paths", "hint": "Paths of aggregation.",
         "value": "auto", "means": "8", "locked": None, "kind": {"choice": ["auto", "4", "8", "16"]}},
        {"section": "matching", "key": "p1", "group": "Penalties", "label": "p1", "hint": "Penalty of a step of 1 px.",
         "value": "7", "means": None, "locked": None, "kind": {"number": dict(number, high=64)}},
        {"section": "matching", "key": "p2", "group": "Penalties", "label": "p2", "hint": "Penalty of a larger step.",
         "value": "auto", "means": "86", "locked": None, "kind": {"number": dict(number, word="auto")}},
        {"section": "matching", "key": "disparities", "group": "Range", "label": "disparities",
         "hint": "Number of candidates.", "value": "64", "means": None,
         "locked": "the recording keeps its range", "kind": {"number": {"low": 16, "high": 256, "step": 16, "word": "auto"}}},
        {"section": "filters", "key": "consistency", "group": "Filters", "label": "left-right check",
         "hint": "Compares both views.", "value": "true", "means": None, "locked": None, "kind": "switch"},
        {"section": "filters", "key": "uniqueness", "group": "Filters", "label": "uniqueness", "hint": "In percent.",
         "value": "10", "means": None, "locked": None, "kind": {"number": dict(number, high=50, step=0.5)}},
        {"section": "colour", "key": "map", "group": "Colours", "label": "map", "hint": "The colours of the disparity.",
         "value": "turbo", "means": None, "locked": None, "kind": {"choice": list(TABLES)}},
        {"section": "colour", "key": "max", "group": "Colours", "label": "last", "hint": "Disparity of the last colour.",
         "value": "auto", "means": "63", "locked": None, "kind": {"number": {"low": -64, "high": 256, "step": 1, "word": "auto"}}},
    ]


class Mock:
    """The server, in a thread of its own."""

    def __init__(self, calibrated=True, port=0):
        self.calibrated, self.port = calibrated, port
        self.knobs, self.paused, self.saved, self.received = knobs(), False, 0, []
        self.clients, self.seq, self.banners = [], 0, []
        self.disparity, self.confidence, self.left = scene()
        self.parts = {}
        self.loop = asyncio.new_event_loop()
        self.started = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    # -- life

    def start(self):
        self.thread.start()
        assert self.started.wait(20)
        return self

    def stop(self):
        async def shut():
            for client in list(self.clients):
                client["stop"] = True
            await self.runner.cleanup()
            self.loop.stop()
        asyncio.run_coroutine_threadsafe(shut(), self.loop)
        self.thread.join(20)

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.serve())
        self.started.set()
        self.loop.run_forever()
        self.loop.close()

    async def serve(self):
        app = web.Application()
        kinds = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
        for name, kind in kinds.items():
            async def give(_, name=name, kind=kind):
                headers = {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff"}
                return web.Response(body=(FILES / name).read_bytes(), content_type=kind, charset="utf-8", headers=headers)
            app.router.add_get("/" if name == "page.html" else "/" + name, give)
        app.router.add_get("/live", self.live)
        app.router.add_get("/snapshot/disparity.png", self.png)
        app.router.add_get("/snapshot/cloud.ply", self.ply)
        self.runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self.runner.addresses[0][1]

    # -- what it shows

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def span(self):
        last = self.value("colour", "max")
        return [0, 63 if last == "auto" else float(last)]

    def table(self):
        return TABLES[self.value("colour", "map")]

    def value(self, section, key):
        return next(k["value"] for k in self.knobs if (k["section"], k["key"]) == (section, key))

    def frame(self, half):
        step = 2 if half else 1
        if step not in self.parts:
            jpeg = io.BytesIO()
            Image.fromarray(self.left[::step, ::step]).save(jpeg, "jpeg", quality=85)
            small = [np.ascontiguousarray(a[::step, ::step]) for a in (self.disparity, self.confidence)]
            self.parts[step] = (jpeg.getvalue(), *map(deflated, small))
        parts = self.parts[step]
        header = {"seq": self.seq, "time": self.seq / 30, "sent": time.time() * 1000, "width": WIDTH // step,
                  "height": HEIGHT // step, "scale": step, "jpeg": len(parts[0]), "disparity": len(parts[1]),
                  "confidence": len(parts[2]), "range": [0, 64], "latency_ms": 8.1,
                  "geometry": GEOMETRY if self.calibrated else None}
        head = json.dumps(header).encode()
        return struct.pack("<I", len(head)) + head + b"".join(parts)

    def status(self, client):
        return {"type": "status", "engine": "CPU (AVX-512, 2 threads)", "rate": 29.9, "pairs": self.seq + 4, "matched": self.seq,
                "frames": [self.seq + 5, self.seq + 6], "unpaired": [1, 2], "dropped": 3,
                "outputs": [{"name": "depth.mkv", "frames": self.seq, "dropped": 4, "failed": False}],
                "latency_ms": {"p50": 8.1, "p95": 11.9}, "valid_share": 0.87,
                "alignment": {"text": "rows 0.0 px, roll -0.00 deg", "alarm": False},
                "exposure": {"text": "noise 2.1 and 2.3, mean 95 and 180, white 0.0 % and 12.0 %", "alarm": True},
                "banners": self.banners, "paused": self.paused, "ended": False,
                "client": {"skipped": client["skipped"], "half": client["half"]}}

    def knobs_message(self, number=None, problem=None):
        return {"type": "knobs", "number": number, "problem": problem, "colours": self.table(),
                "colour_span": self.span(), "knobs": self.knobs}

    # -- connections

    async def live(self, request):
        socket = web.WebSocketResponse(max_msg_size=1 << 20)
        await socket.prepare(request)
        token = request.query.get("token", "")
        if token not in ("", TOKEN):
            await socket.close(code=1008, message=b"wrong token")
            return socket
        client = {"socket": socket, "may": token == TOKEN, "open": 0, "skipped": 0, "half": False, "stop": False}
        self.clients.append(client)
        await socket.send_json({"type": "hello", "version": "0.1.0", "source": "test scene", "may_change": client["may"],
                                "colours": self.table(), "colour_span": self.span(), "live": True})
        await socket.send_json(self.knobs_message())
        sender = asyncio.ensure_future(self.sender(client))
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    await self.receive(client, json.loads(message.data))
        finally:
            client["stop"] = True
            sender.cancel()
            self.clients.remove(client)
        return socket

    async def sender(self, client):
        due = 0
        while not client["stop"]:
            if not self.paused:
                self.seq += 1
                if client["open"] < 2:
                    client["open"] += 1
                    await client["socket"].send_bytes(self.frame(client["half"]))
                else:
                    client["skipped"] += 1
            if time.monotonic() >= due:
                due = time.monotonic() + 1
                await client["socket"].send_json(self.status(client))
            await asyncio.sleep(1 / 15)

    async def receive(self, client, message):
        kind = message["type"]
        if kind == "ack":
            client["open"] -= 1
            client["acks"] = client.get("acks", 0) + 1
            return
        self.received.append(message)
        if kind == "quality":
            client["half"] = bool(message["half"])
            return
        assert client["may"], "a change without the token"
        if kind == "tune":
            wanted = {(section, key): value for section, key, value in message["values"]}
            bad = [value for value in wanted.values() if value == "many"]
            problem = f"matching.p1: a number from 0 to 64, not '{bad[0]}'" if bad else None
            if not problem:
                for knob in self.knobs:
                    knob["value"] = wanted.get((knob["section"], knob["key"]), knob["value"])
            await client["socket"].send_json(self.knobs_message(message["number"], problem))
        elif kind == "reset":
            self.knobs = knobs()
            await client["socket"].send_json(self.knobs_message())
        elif kind == "save":
            self.saved += 1
            await client["socket"].send_json({"type": "note", "ok": True, "text": "settings saved to tuned.toml"})
        elif kind == "pause":
            self.paused = message["on"]

    async def png(self, request):
        file = io.BytesIO()
        Image.fromarray(np.where(self.disparity == UNKNOWN, 0, self.disparity * 16).astype("u2")).save(file, "png")
        return web.Response(body=file.getvalue(), content_type="image/png",
                            headers={"Content-Disposition": 'attachment; filename="disparity.png"'})

    async def ply(self, request):
        if not self.calibrated:
            return web.Response(status=404, text="needs a calibration")
        return web.Response(body=b"ply\n", content_type="application/octet-stream",
                            headers={"Content-Disposition": 'attachment; filename="cloud.ply"'})


if __name__ == "__main__":
    server = Mock(port=8099).start()
    server.banners = [{"text": "matching is slower than the source: --disparities 48 would keep up", "trouble": True}]
    print(server.url, flush=True)
    server.thread.join()
