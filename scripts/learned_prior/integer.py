"""Reference of the exported network in numpy integers; reads the .prior file of export.py alone.

python integer.py NETWORK.prior LEFT RIGHT OUT.png     disparity in 1/256 px, 0 where not confident
"""

import json
import pathlib
import sys
import zlib

import numpy as np

FORMAT = "stereo prior 1"
# Parameters of a convolution, in the order of the file.
PARTS = "weight", "bias", "shift"
KINDS = "i1", "<i4", "u1"


def convolutions(description: dict) -> list[dict]:
    """Returns the convolutions in the order of their parameters in the file."""
    layers = description["layers"]
    return [x for stage in ("view", "pair") for x in layers[stage] if x["op"] == "conv"]


def write(path: pathlib.Path, description: dict, arrays: dict[str, np.ndarray]) -> None:
    """Writes a .prior file; `arrays` holds NAME.weight, NAME.bias and NAME.shift."""
    data = json.dumps(description).encode() + b"\n"
    for layer in convolutions(description):
        for part, kind in zip(PARTS, KINDS, strict=True):
            data += arrays[f"{layer['output']}.{part}"].astype(kind).tobytes()
    path.write_bytes(data + zlib.crc32(data).to_bytes(4, "little"))


def read(path: pathlib.Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Returns description and arrays of a .prior file, as `write` takes them."""
    data = path.read_bytes()
    data, checksum = data[:-4], int.from_bytes(data[-4:], "little")
    if zlib.crc32(data) != checksum:
        raise ValueError(f"{path}: damaged, or not a .prior file")
    line, data = data.split(b"\n", 1)
    description, arrays = json.loads(line), {}
    if description["format"] != FORMAT:
        raise ValueError(f"{path}: format {description['format']!r}, not {FORMAT!r}")
    for layer in convolutions(description):
        channels, kernel = layer["channels_out"], layer["kernel"]
        shapes = (channels, layer["channels_in"], kernel, kernel), (channels,), (channels,)
        for part, kind, shape in zip(PARTS, KINDS, shapes, strict=True):
            array = np.frombuffer(data, kind, int(np.prod(shape))).reshape(shape)
            arrays[f"{layer['output']}.{part}"], data = array, data[array.nbytes :]
    if data:
        raise ValueError(f"{path}: {len(data)} bytes too many")
    return description, arrays


def image_planes(image: np.ndarray) -> np.ndarray:
    """Grey image (H,W) of 0..255 -> the four input channels (4,H,W), int32 of 0..127."""
    height, width = image.shape
    image = image.astype(np.int32)
    padded = np.pad(image, 1, mode="edge")
    total = sum(padded[y : y + height, x : x + width] for y in range(3) for x in range(3))
    across = padded[1:-1, 2:] - padded[1:-1, :-2]
    down = padded[2:, 1:-1] - padded[:-2, 1:-1]
    detail = 4 * (image - (total + 4) // 9)
    return np.stack([image >> 1] + [np.clip(64 + x, 0, 127) for x in (across, down, detail)])


def convolve(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, shift: np.ndarray, layer: dict
) -> np.ndarray:
    """Zero-padded convolution of (C,h,w): (sum + bias) >> shift, clamped to low..high."""
    kernel, stride, dilation = layer["kernel"], layer["stride"], layer["dilation"]
    margin = dilation * (kernel // 2)
    padded = np.pad(x, ((0, 0), (margin, margin), (margin, margin)))
    height, width = (-(-n // stride) for n in x.shape[1:])
    result = np.repeat(bias, height * width).reshape(-1, height, width)
    for ky in range(kernel):
        for kx in range(kernel):
            y, x0 = ky * dilation, kx * dilation
            tap = padded[
                :,
                y : y + (height - 1) * stride + 1 : stride,
                x0 : x0 + (width - 1) * stride + 1 : stride,
            ]
            result += np.tensordot(weight[:, :, ky, kx].astype(np.int32), tap, 1)
    return np.clip(result >> shift.astype(np.int32)[:, None, None], layer["low"], layer["high"])


def correlate(left: np.ndarray, right: np.ndarray, layer: dict) -> np.ndarray:
    """Features (C,h,w) of both views -> (groups * candidates, h, w), 0..127."""
    groups, candidates = layer["groups"], layer["candidates"]
    channels, height, width = left.shape
    result = np.zeros((groups, candidates, height, width), np.int32)
    for d in range(min(candidates, width)):
        products = left[:, :, d:] * right[:, :, : width - d]
        result[:, d, :, d:] = products.reshape(groups, channels // groups, height, width - d).sum(1)
    return np.clip(result >> layer["shift"], 0, 127).reshape(groups * candidates, height, width)


def decode(head: np.ndarray, table: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Head (candidates + 1, h, w) -> disparity in 1/16 candidates, confidence logit, (h,w)."""
    logits, confidence = head[:-1], head[-1]
    candidate = np.arange(len(logits), dtype=np.int32)[:, None, None]
    best = logits.argmax(0)  # the first of equals
    below = np.minimum(logits.max(0) - logits, len(table) - 1)
    weight = table[below] * (abs(candidate - best) <= reach)
    total, moment = weight.sum(0), (weight * candidate).sum(0)
    return (32 * moment + total) // (2 * total), confidence


class IntegerNetwork:
    """An exported network: layers and constants (`description`), weights and biases (`arrays`)."""

    def __init__(self, path: str):
        self.description, self.arrays = read(pathlib.Path(path))

    def run(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Grey images (H,W) uint8 -> disparity in 1/16 candidates, confidence logit, both (h,w).

        Cell (y, x) covers the pixels from (y * step, x * step) on.
        """
        views = []
        for image in (left, right):
            margins = [(0, -n % self.description["multiple"]) for n in image.shape]
            planes = image_planes(np.pad(image, margins, mode="edge"))
            views.append(self._run("view", {"planes": planes}))
        values = dict(views[0])
        values["features"] = views[0]["features"], views[1]["features"]
        head = self._run("pair", values)["head"]
        table = np.array(self.description["table"], np.int32)
        return decode(head, table, self.description["reach"])

    def _run(self, stage: str, values: dict) -> dict:
        for layer in self.description["layers"][stage]:
            inputs = [values[name] for name in layer["inputs"]]
            if layer["op"] == "correlate":
                result = correlate(*inputs[0], layer)
            elif layer["op"] == "double":
                result = inputs[0].repeat(2, 1).repeat(2, 2)
            else:
                parameters = (
                    self.arrays[f"{layer['output']}.{part}"] for part in PARTS
                )
                result = convolve(np.concatenate(inputs), *parameters, layer)
                if layer["add"]:
                    result = np.clip(values[layer["add"]] + result, 0, 127)
            values[layer["output"]] = result
        return values


def main() -> None:
    import cv2

    path, left, right, out = sys.argv[1:]
    network = IntegerNetwork(path)
    images = [cv2.imread(name, cv2.IMREAD_GRAYSCALE) for name in (left, right)]
    disparity, confidence = network.run(*images)
    step, (height, width) = network.description["step"], images[0].shape
    pixels = disparity * step * 16 * (confidence >= network.description["confidence_threshold"])
    cv2.imwrite(out, pixels.repeat(step, 0).repeat(step, 1)[:height, :width].astype(np.uint16))


if __name__ == "__main__":
    main()
