"""Writes tiny stereo networks (ONNX) for the tests: `python make.py FOLDER`.

Each is the same block matcher of 64 disparities, but takes and returns values in the way of some published network:
other names, scales, signs, units, sizes. A few are no stereo networks, or damaged. Needs `pip install onnx`.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

DISPARITIES = 64
FLOAT = TensorProto.FLOAT

# An input value times the first number plus the second is a grey level of 0..255.
BYTE = (1.0, 0.0)
UNIT = (255.0, 0.0)
SIGNED = (127.5, 127.5)
IMAGENET = tuple(255.0 * np.reshape(rgb, (1, 3, 1, 1)) for rgb in ([0.229, 0.224, 0.225], [0.485, 0.456, 0.406]))

# Parts of red, green and blue in a grey level.
REC_709 = (0.2125, 0.7154, 0.0721)

Scale = Sequence[Any]
Values = dict[str, Sequence[int | str] | None]  # names and shapes


class Graph:
    """Nodes and constants of a network under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        self.constants.append(numpy_helper.from_array(array, f"constant{len(self.constants)}"))
        return str(self.constants[-1].name)

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Adds a node; inputs are names of values, or numbers. Returns the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(operator, names, [f"value{len(self.nodes)}"], **attributes))
        return str(self.nodes[-1].output[0])


def grey(g: Graph, image: str, scale: Scale, weights: Scale = REC_709) -> str:
    """Grey levels 0..255 of an image of 1 or 3 channels; all zero if its values are of another scale, because they
    leave 0..255 or span less than 130 levels."""
    value = g("Cast", image, to=FLOAT)
    level = g("Add", g("Mul", value, scale[0]), scale[1])
    level = g("ReduceSum", g("Mul", level, np.reshape(weights, (1, 3, 1, 1))), [1])
    low, high = g("ReduceMin", level), g("ReduceMax", level)
    inside = g("And", g("Greater", low, -2.0), g("Less", high, 257.0))
    fits = g("And", inside, g("Greater", g("Sub", high, low), 130.0))
    return g("Mul", g("Clip", g("Round", level), 0.0, 255.0), g("Cast", fits, to=FLOAT))


def match(
    g: Graph, left: str = "left", right: str = "right", scale: Scale = BYTE, weights: Scale = REC_709
) -> str:
    """Disparity [1,1,H,W] of the left view: absolute differences, truncated, averaged over 5x5, winner takes all."""
    left, right = grey(g, left, scale, weights), grey(g, right, scale, weights)
    padded = g("Pad", right, [0, 0, 0, DISPARITIES - 1, 0, 0, 0, 0], -1.0)
    # Kernel d picks the pixel d columns to the left.
    shifted = g("Conv", padded, np.fliplr(np.eye(DISPARITIES)).reshape(DISPARITIES, 1, 1, DISPARITIES))
    difference = g("Min", g("Abs", g("Sub", left, shifted)), 40.0)
    cost = g("Where", g("Less", shifted, 0.0), 1000.0, difference)  # large where the right view ends
    mean = g("AveragePool", cost, kernel_shape=[5, 5], pads=[2, 2, 2, 2], count_include_pad=0)
    return g("Cast", g("ArgMin", mean, axis=1), to=FLOAT)


def match_stacked(g: Graph, channels: int) -> str:
    """Disparity [1,H,W,1] of two views of 0..1 in one input."""
    left, right = (g("Slice", "input", [first], [first + channels], [1]) for first in (0, channels))
    return g("Transpose", match(g, left, right, UNIT), perm=[0, 2, 3, 1])


def match_two_sizes(g: Graph) -> str:
    """Flow (disparity and 0), which is 0 unless the half-size views show the same as those of full size."""
    disparity = match(g, "next_left", "next_right")
    for side in ("left", "right"):
        half, full = (
            g("AveragePool", grey(g, f"{name}_{side}", BYTE), kernel_shape=[size, size], strides=[size, size])
            for name, size in (("init", 8), ("next", 16))
        )
        alike = g("Less", g("ReduceMean", g("Abs", g("Sub", half, full))), 16.0)
        disparity = g("Mul", disparity, g("Cast", alike, to=FLOAT))
    return g("Concat", disparity, g("Mul", disparity, 0.0), axis=1)


def lie(g: Graph) -> str:
    """Disparity, plus 12 in rows 25 to 50 % and columns 40 to 70 %."""
    error = np.zeros((1, 1, 20, 20))
    error[:, :, 5:10, 8:14] = 12
    disparity = match(g)
    enlarge = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    return g("Add", disparity, g("Resize", error, "", "", g("Shape", disparity), **enlarge))


def match_multiples_of_32(g: Graph) -> str:
    """Disparity; fails at run time if height or width is no multiple of 32, because elements would be lost."""
    blocks = g("Div", g("Shape", "left"), [1, 1, 32, 32])
    return match(g, g("Reshape", "left", g("Mul", blocks, [1, 1, 32, 32])), "right")


def match_with_features(g: Graph) -> list[str]:
    """Left view at a quarter of its size, eight times; then the disparity."""
    quarter = g("AveragePool", grey(g, "left", BYTE), kernel_shape=[4, 4], strides=[4, 4])
    return [g("Concat", *[quarter] * 8, axis=1), match(g)]


def classify(g: Graph) -> str:
    return g("Expand", g("ReduceMean", "image", axes=[1, 2, 3], keepdims=0), [1, 1000])


RGB = (1, 3, "H", "W")
PAIR: Values = {"left": RGB, "right": RGB}
MAP: Values = {"disparity": (1, 1, "H", "W")}
STACKED: Values = {"reference_output_disparity": (1, "H", "W", 1)}
HALF = (1, 3, "H/2", "W/2")
TWO_SIZES: Values = {"init_left": HALF, "init_right": HALF, "next_left": RGB, "next_right": RGB}


class Network(NamedTuple):
    body: Callable[[Graph], str | list[str]]
    inputs: Values = PAIR
    outputs: Values = MAP
    type: int = FLOAT


def fixed_size(output: str, *size: int) -> Network:
    return Network(match, {"left": (1, 3, *size), "right": (1, 3, *size)}, {output: (1, 1, *size)})


NETWORKS = {
    # As published: HITNet, CREStereo, RAFT-Stereo, FoundationStereo.
    "stacked_grey": Network(lambda g: match_stacked(g, 1), {"input": (1, 2, "H", "W")}, STACKED),
    "stacked_rgb": Network(lambda g: match_stacked(g, 3), {"input": (1, 6, "H", "W")}, STACKED),
    "four_inputs": Network(match_two_sizes, TWO_SIZES, {"flow": (1, 2, "H", "W")}),
    "negative": Network(lambda g: g("Neg", match(g))),
    "fixed": fixed_size("disp", 256, 320),
    # Other scales, sizes, orders and types.
    "imagenet": Network(lambda g: g("Squeeze", match(g, scale=IMAGENET), [1]), PAIR, {"disparity": (1, "H", "W")}),
    "normalised": Network(lambda g: g("Div", match(g, scale=SIGNED), g("Cast", g("Shape", "left", start=3), to=FLOAT))),
    "lite": fixed_size("disparity", 480, 640),
    "multiple_of_32": Network(match_multiples_of_32),
    "swapped": Network(lambda g: match(g, "input2", "input1"), {"input1": RGB, "input2": RGB}),
    "two_outputs": Network(match_with_features, PAIR, {"features": (1, 8, "H/4", "W/4")} | MAP),
    "half": Network(lambda g: g("Cast", match(g), to=TensorProto.FLOAT16), type=TensorProto.FLOAT16),
    # Match on red alone, which comes first or last.
    "red_first": Network(lambda g: match(g, weights=(1.0, 0.0, 0.0))),
    "red_last": Network(lambda g: match(g, scale=UNIT, weights=(0.0, 0.0, 1.0))),
    "double": Network(lambda g: g("Cast", match(g), to=TensorProto.DOUBLE), type=TensorProto.DOUBLE),
    "any_rank": Network(match, {"left": None, "right": None}),
    # Wrong results, and no stereo networks.
    "liar": Network(lie),
    "nan": Network(lambda g: g("Mul", match(g), np.nan)),
    "constant": Network(lambda g: g("Add", g("Mul", match(g), 0.0), 7.0)),
    "depth": Network(lambda g: grey(g, "image", BYTE), {"image": RGB}, {"depth": (1, 1, "H", "W")}),
    "classifier": Network(classify, {"image": (1, 3, 224, 224)}, {"classes": (1, 1000)}),
}


def encode(name: str, network: Network) -> bytes:
    g = Graph()
    results = network.body(g)
    for result, output in zip([results] if isinstance(results, str) else results, network.outputs, strict=True):
        g.nodes.append(helper.make_node("Identity", [result], [output]))
    inputs = [helper.make_tensor_value_info(x, network.type, shape) for x, shape in network.inputs.items()]
    outputs = [helper.make_tensor_value_info(x, network.type, shape) for x, shape in network.outputs.items()]
    graph = helper.make_graph(g.nodes, name, inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def write(folder: Path) -> None:
    """Writes all networks into a folder, which is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, network in NETWORKS.items():
        (folder / f"{name}.onnx").write_bytes(encode(name, network))
    lite = (folder / "lite.onnx").read_bytes()
    (folder / "damaged.onnx").write_bytes(lite[: len(lite) // 2])
    (folder / "not_onnx.onnx").write_text("This is no network.\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
