"""Exports a trained network as integers (.prior) and ONNX, and checks both against PyTorch.

python export.py DIR OUT        reads DIR/model.pt; writes OUT.prior and OUT.onnx
"""

import argparse
import copy
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import scenes
from integer import FORMAT, IntegerNetwork, write
from network import CONFIGS, LARGEST_SUM, REACH, TABLE, UNIT, Convolution, Network, work

LARGEST_FILE = 3_000_000  # bytes


def export_integers(network: Network, path: pathlib.Path, confidence: float) -> None:
    """Writes description, weights, biases and shifts."""
    config = network.config
    arrays = {}
    for name, convolution in network.convolutions.items():
        weight, bias, shift = (x.numpy() for x in convolution.integers())
        # Bound of |sum|: inputs are -127..127 at most.
        bound = (
            127 * np.abs(weight.astype(np.int64)).sum((1, 2, 3)) + np.abs(bias.astype(np.int64))
        ).max()
        if bound >= LARGEST_SUM:
            raise SystemExit(f"{name}: sums may reach {bound}, which float32 does not hold exactly")
        arrays |= {f"{name}.weight": weight, f"{name}.bias": bias, f"{name}.shift": shift}
    description = dict(
        format=FORMAT,
        config=config.name,
        step=config.step,
        multiple=config.multiple,
        candidates=config.candidates,
        reach=REACH,
        table=TABLE,
        logit_unit=UNIT,
        confidence_threshold=round(UNIT * math.log(confidence / (1 - confidence))),
        layers=network.plan,
    )
    write(path, description, arrays)
    size = path.stat().st_size
    if size >= LARGEST_FILE:
        raise SystemExit(f"{path} has {size} bytes, more than {LARGEST_FILE}")


def plain(convolution: Convolution) -> nn.Conv2d:
    """Returns the exported integers times 2^-shift, as a convolution to be rounded half up."""
    weight, bias, shift = (x.double() for x in convolution.integers())
    scale = torch.exp2(-shift)
    channels_out, channels_in, kernel, _ = weight.shape
    result = nn.Conv2d(
        channels_in,
        channels_out,
        kernel,
        convolution.stride,
        convolution.padding,
        convolution.dilation,
    )
    result.weight.data = weight * scale[:, None, None, None]
    half = torch.where(shift > 0, torch.exp2(shift - 1), torch.zeros_like(shift))
    result.bias.data = (bias - half) * scale
    return result


def plain_network(network: Network, dtype: torch.dtype) -> Network:
    """Returns a copy that computes with the exported integers, as floating-point numbers."""
    copied = copy.deepcopy(network)
    for name, convolution in network.convolutions.items():
        copied.convolutions[name] = plain(convolution)
    return copied.to(dtype).eval()


class FullSize(nn.Module):
    """Float graph for ONNX: disparity in px, NaN where not confident, and confidence 0..1, of the
    size of the images."""

    def __init__(self, network: Network, confidence: float):
        super().__init__()
        self.network = plain_network(network, torch.float32)
        self.confidence = confidence

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        disparity, logit = self.network.decode(self.network(left.round(), right.round()))
        step = self.network.config.step
        height, width = left.shape[-2:]
        maps = torch.cat([disparity * (step / 16), torch.sigmoid(logit / UNIT)], 1)
        maps = F.interpolate(maps, scale_factor=step, mode="nearest")[..., :height, :width]
        disparity, confidence = maps[:, :1], maps[:, 1:]
        unknown = torch.full_like(disparity, math.nan)
        return torch.where(confidence >= self.confidence, disparity, unknown), confidence


def export_onnx(network: Network, path: pathlib.Path, confidence: float) -> None:
    """Writes a graph of left, right (grey 0..255) -> disparity, confidence, all (1,1,H,W)."""
    example = torch.zeros(1, 1, 96, 160)
    names = ["left", "right", "disparity", "confidence"]
    with torch.no_grad():
        torch.onnx.export(
            FullSize(network, confidence).eval(),
            (example, example),
            str(path),
            dynamo=False,
            opset_version=17,
            input_names=names[:2],
            output_names=names[2:],
            dynamic_axes={name: {2: "height", 3: "width"} for name in names},
        )


def check_pairs(step: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Small pairs of odd sizes: random grey levels, and generated scenes."""
    dice = np.random.default_rng(5)
    sizes = (64, 96), (75, 131), (40, 50)
    pairs = [(f"random {h}x{w}", *dice.integers(0, 256, (2, h, w), np.uint8)) for h, w in sizes]
    generator = torch.Generator().manual_seed(5)
    for height, width in (96, 160), (80, 208):
        left, right, *_ = scenes.make(1, height, width, 8.0 * step, generator, "cpu")
        pairs.append((f"scene {height}x{width}", left[0, 0].numpy(), right[0, 0].numpy()))
    return pairs


@torch.no_grad()
def check(network: Network, out: pathlib.Path, onnx_path: pathlib.Path | None) -> bool:
    """Compares the trained network (float32), its integers in float64, integer.py and ONNX Runtime.

    Returns whether the first three agree exactly.
    """
    integer = IntegerNetwork(str(out))
    session = None
    if onnx_path:
        import onnxruntime

        session = onnxruntime.InferenceSession(str(onnx_path), providers=["CPUExecutionProvider"])
    networks = {torch.float32: network, torch.float64: plain_network(network, torch.float64)}
    agree, step = True, network.config.step
    for name, left, right in check_pairs(step):
        disparity, confidence = integer.run(left, right)
        line = f"{name}, {len(np.unique(disparity))} disparities: integer.py equals"
        for dtype, each in networks.items():
            images = [torch.from_numpy(x)[None, None].to(dtype) for x in (left, right)]
            outputs = [x[0, 0].numpy() for x in each.decode(each(*images))]
            equal = all(
                np.array_equal(a, b) for a, b in zip(outputs, (disparity, confidence), strict=True)
            )
            line += f" {str(dtype).removeprefix('torch.')} {equal},"
            agree &= equal
        if session:
            feed = {
                side: x[None, None].astype(np.float32)
                for side, x in (("left", left), ("right", right))
            }
            found, probability = (x[0, 0] for x in session.run(None, feed))
            full = [
                np.repeat(np.repeat(x, step, 0), step, 1)[: left.shape[0], : left.shape[1]]
                for x in (disparity * (step / 16), 1 / (1 + np.exp(-confidence / UNIT)))
            ]
            known = np.isfinite(found)
            line += (
                f" ONNX knows {known.mean():.2f}, off by at most"
                f" {np.abs(found - full[0])[known].max(initial=0):g} px,"
                f" confidence {np.abs(probability - full[1]).max():.1e}"
            )
        print(line)
    return agree


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=pathlib.Path, metavar="DIR")
    parser.add_argument("out", type=pathlib.Path, metavar="OUT")
    parser.add_argument(
        "--confidence", type=float, default=0.5, help="probability from which a cell is confident"
    )
    options = parser.parse_args()
    saved = torch.load(options.model / "model.pt", map_location="cpu")
    config = CONFIGS[saved["config"]]
    network = Network(config)
    network.load_state_dict(saved["network"])
    network.eval()
    adds, weights = work(config, 720, 1280)
    print(f"{config.name}: {weights / 1e6:.2f} M weights, {adds / 1e9:.1f} G multiply-adds at 720p")

    out, onnx_path = (options.out.with_name(options.out.name + end) for end in (".prior", ".onnx"))
    export_integers(network, out, options.confidence)
    print(f"{out}: {out.stat().st_size} bytes")
    try:
        export_onnx(network, onnx_path, options.confidence)
        import onnxruntime  # noqa: F401
    except ImportError as error:  # the integers alone can be exported and checked
        print(f"ONNX is not exported or not checked: {error}")
        onnx_path = None
    if not check(network, out, onnx_path):
        raise SystemExit("The exported integers differ from the network.")


if __name__ == "__main__":
    main()
