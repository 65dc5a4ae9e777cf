"""Stereo network with exact integer arithmetic, for use as a prior of Semi-Global Matching.

A `Config` gives the sizes, `plan` turns it into a list of layers. `Network` runs that list in
PyTorch with fake quantisation, `integer.py` runs the exported list in numpy integers. All
activations are integers, kept in float tensors here: 0..127 after a ReLU, -127..127 for the
features to be compared.

    python network.py        prints weights and multiply-adds of every Config
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

UNIT = 16  # integer steps of an activation or a logit per 1.0 of the float network
LARGEST_SUM = 1 << 24  # sums below this are exact in float32, whatever their order
LARGEST_LOGIT = 2047
EPSILON = 1e-3  # of batch normalisation, in squared integer steps
REACH = 2  # candidates on either side of the best that the disparity is averaged over
TABLE = [
    round(255 * math.exp(-t / UNIT)) for t in range(256)
]  # weight of a logit that is t below the best


@dataclass(frozen=True)
class Config:
    """Sizes of a network.

    A cell is step x step pixels; candidate k means a disparity of k * step pixels.
    """

    name: str
    stem: tuple[int, ...]  # channels after each convolution of stride 2; step = 2 ** len(stem)
    feature_dilations: tuple[int, ...]  # residual blocks at the resolution of the cells
    candidates: int
    groups: int
    correlation_shift: int
    levels: tuple[
        int, ...
    ]  # channels of the hourglass, finest first; each level halves the resolution
    level_dilations: tuple[tuple[int, ...], ...]  # residual blocks of each level on the way down
    right_within: float  # px; the confidence learns whether the error is below this

    @property
    def step(self) -> int:
        return 2 ** len(self.stem)

    @property
    def multiple(self) -> int:
        """Images are padded to a multiple of this."""
        return self.step * 2 ** (len(self.levels) - 1)


CONFIGS = {
    config.name: config
    for config in (
        Config(
            "quarter", (16, 32), (1, 2, 4, 1), 48, 4, 5, (64, 96, 128), ((1,), (1,), (1, 2)), 1.5
        ),
        Config("eighth", (16, 32, 48), (1, 2), 24, 4, 6, (64, 96, 128), ((1,), (1,), (1, 2)), 3.0),
        Config("tiny", (16, 16), (1,), 16, 2, 5, (32, 32), ((1,), (1,)), 1.5),  # for tests
    )
}


def plan(config: Config) -> dict[str, list[dict]]:
    """Returns the layers: "view" runs on each view alone, "pair" on both.

    A layer reads named values and writes one. `inputs` of a convolution are concatenated in order.
    `size` is the divisor of the output resolution. With `add`, the result is clamped to low..high,
    added to the named value, and clamped to 0..127.
    """
    view: list[dict] = []
    pair: list[dict] = []

    def conv(
        stage,
        output,
        inputs,
        channels_in,
        channels_out,
        size,
        kernel=3,
        stride=1,
        dilation=1,
        low=0,
        high=127,
        add=None,
    ):
        stage.append(
            dict(
                op="conv",
                inputs=inputs,
                output=output,
                channels_in=channels_in,
                channels_out=channels_out,
                size=size,
                kernel=kernel,
                stride=stride,
                dilation=dilation,
                low=low,
                high=high,
                add=add,
            )
        )
        return output

    def residuals(stage, name, value, channels, size, dilations):
        for i, dilation in enumerate(dilations):
            inner = conv(
                stage, f"{name}_{i}_inner", [value], channels, channels, size, dilation=dilation
            )
            value = conv(
                stage, f"{name}_{i}", [inner], channels, channels, size, low=-127, add=value
            )
        return value

    value, channels = "planes", 4
    for i, width in enumerate(config.stem):
        value = conv(view, f"stem_{i}", [value], channels, width, 2 ** (i + 1), stride=2)
        channels = width
    trunk = residuals(view, "trunk", value, channels, config.step, config.feature_dilations)
    conv(view, "features", [trunk], channels, channels, config.step, kernel=1, low=-127)

    pair.append(
        dict(
            op="correlate",
            inputs=["features"],
            output="costs",
            candidates=config.candidates,
            groups=config.groups,
            shift=config.correlation_shift,
            channels_in=channels,
            size=config.step,
        )
    )
    size, width = config.step, config.levels[0]
    value = conv(
        pair,
        "merge",
        ["costs", trunk],
        config.candidates * config.groups + channels,
        width,
        size,
        kernel=1,
    )
    value = residuals(pair, "down_0", value, width, size, config.level_dilations[0])
    skips = [value]
    for i, wider in enumerate(config.levels[1:], 1):
        size *= 2
        value = conv(pair, f"reduce_{i}", [value], width, wider, size, stride=2)
        value = residuals(pair, f"down_{i}", value, wider, size, config.level_dilations[i])
        skips.append(value)
        width = wider
    for i in reversed(range(len(config.levels) - 1)):
        size //= 2
        pair.append(dict(op="double", inputs=[value], output=f"double_{i}", size=size))
        narrower = config.levels[i]
        value = conv(
            pair, f"join_{i}", [f"double_{i}", skips[i]], width + narrower, narrower, size, kernel=1
        )
        value = residuals(pair, f"up_{i}", value, narrower, size, (1,))
        width = narrower
    conv(
        pair,
        "head",
        [value],
        width,
        config.candidates + 1,
        size,
        low=-LARGEST_LOGIT,
        high=LARGEST_LOGIT,
    )
    return dict(view=view, pair=pair)


def work(config: Config, height: int, width: int) -> tuple[int, int]:
    """Returns the multiply-adds for one image pair, and the number of weights."""
    adds = weights = 0
    for stage, layers in plan(config).items():
        for layer in layers:
            cells = (height // layer["size"]) * (width // layer["size"])
            if layer["op"] == "conv":
                each = layer["channels_in"] * layer["channels_out"] * layer["kernel"] ** 2
                weights += each
                adds += each * cells * (2 if stage == "view" else 1)
            elif layer["op"] == "correlate":
                adds += layer["channels_in"] * layer["candidates"] * cells
    return adds, weights


class _Quantise(torch.autograd.Function):
    """Rounds half up and clamps. The gradient passes where nothing is clamped."""

    @staticmethod
    def forward(ctx, x, low, high, half):
        ctx.save_for_backward(x)
        ctx.range = low, high
        return (x + half).floor_().clamp_(low, high)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.hardtanh_backward(gradient, x, *ctx.range), None, None, None


def quantise(x: Tensor, low: int, high: int, half: float = 0.5) -> Tensor:
    """floor(x + half) clamped to low..high."""
    if torch.is_grad_enabled():
        return _Quantise.apply(x, low, high, half)
    return (x + half).floor().clamp(low, high)


def image_planes(image: Tensor) -> Tensor:
    """Grey image (B,1,H,W) of 0..255 -> the four input channels (B,4,H,W) of 0..127."""
    padded = F.pad(image, (1, 1, 1, 1), mode="replicate")
    rows = padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]
    total = rows[..., :-2, :] + rows[..., 1:-1, :] + rows[..., 2:, :]
    mean = ((total + 4) / 9).floor()
    across = padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]
    down = padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]
    detail = 4 * (image - mean)
    return torch.cat(
        [(image / 2).floor()] + [(64 + x).clamp(0, 127) for x in (across, down, detail)], 1
    )


def correlate(left: Tensor, right: Tensor, candidates: int, groups: int, shift: int) -> Tensor:
    """Group-wise correlation of features (B,C,h,w) -> (B, groups * candidates, h, w), 0..127.

    Channel g * candidates + d holds sum(left[x] * right[x - d]) >> shift over the channels of group
    g. Right cells outside the image count as 0. Takes little memory; `correlate_fast` gives the
    same from matrix products.
    """
    padded = F.pad(right, (candidates - 1, 0))
    per_candidate = []
    for d in range(candidates):
        start = candidates - 1 - d
        products = left * padded[..., start : -d or None]
        per_candidate.append(torch.stack([p.sum(1) for p in products.chunk(groups, 1)], 1))
    return quantise(torch.stack(per_candidate, 2).flatten(1, 2) / 2**shift, 0, 127, half=0)


def correlate_fast(left: Tensor, right: Tensor, candidates: int, groups: int, shift: int) -> Tensor:
    """`correlate` by matrix products of whole rows, of which the diagonals are kept."""
    batch, channels, height, width = left.shape

    def rows(x: Tensor) -> Tensor:  # (B,C,h,w) -> (B*h*groups, w, C/groups)
        x = x.permute(0, 2, 3, 1).reshape(batch, height, width, groups, channels // groups)
        return x.permute(0, 1, 3, 2, 4).reshape(batch * height * groups, width, channels // groups)

    products = rows(left) @ rows(right).transpose(1, 2)
    # Row x has its candidates at x .. x + candidates - 1, largest first. Reading the same memory
    # with rows that are one longer moves row x left by x.
    wide = F.pad(products, (candidates - 1, 0)).flatten(1)
    wide = F.pad(wide, (0, width)).view(-1, width, width + candidates)[..., :candidates].flip(-1)
    costs = wide.reshape(batch, height, groups, width, candidates).permute(0, 1, 3, 2, 4)
    costs = costs.reshape(batch, height, width, groups * candidates).permute(0, 3, 1, 2)
    return quantise(costs / 2**shift, 0, 127, half=0)


class Convolution(nn.Module):
    """Convolution with fake-quantised weights, batch normalisation folded into them.

    Folded weights are integers of -127..127 times 2^-shift, with one shift per output channel. At
    first, the statistics of the batch normalise, and weights are rounded to the grid of their
    folded form. After `freeze`, and in evaluation, the running statistics are folded in, and the
    result is the exported integer arithmetic.
    """

    def __init__(self, layer: dict):
        super().__init__()
        channels_in, channels_out = layer["channels_in"], layer["channels_out"]
        kernel = layer["kernel"]
        fan_in = channels_in * kernel**2
        self.normalised = layer["output"] != "head"
        self.stride, self.dilation = layer["stride"], layer["dilation"]
        self.padding = self.dilation * (kernel // 2)
        gain = math.sqrt(2) if self.normalised else 1
        self.weight = nn.Parameter(
            torch.randn(channels_out, channels_in, kernel, kernel) * gain / math.sqrt(fan_in)
        )
        self.bias = nn.Parameter(torch.zeros(channels_out))
        if self.normalised:
            # Residual branches start small, so that sums stay within 0..127.
            self.gain = nn.Parameter(torch.full((channels_out,), 0.5 if layer["add"] else 1.0))
            self.register_buffer("mean", torch.zeros(channels_out))
            self.register_buffer("variance", torch.full((channels_out,), 256.0))
        self.register_buffer("shift", torch.zeros(channels_out))
        self.frozen = False
        self.momentum = 0.01
        self.choose_shifts()

    def fold(self) -> Tensor:
        """Returns the factor of each channel that folds the normalisation into the weights."""
        return UNIT * self.gain * (self.variance + EPSILON).rsqrt()

    def folded(self) -> tuple[Tensor, Tensor]:
        """Returns float weights and bias in units of integer activations."""
        if not self.normalised:
            return self.weight, self.bias * UNIT
        fold = self.fold()
        return self.weight * fold[:, None, None, None], self.bias * UNIT - self.mean * fold

    @torch.no_grad()
    def choose_shifts(self) -> None:
        """Chooses the finest grid whose weights fit int8 and whose sums stay below 2^24."""
        weight, bias = (x.double() for x in self.folded())
        largest = weight.abs().amax((1, 2, 3)).clamp(min=1e-9)
        total = 127 * weight.abs().sum((1, 2, 3)) + bias.abs() + 1
        room = LARGEST_SUM - 64 * weight[0].numel() - 2  # rounding adds up to 0.5 to each weight
        shift = torch.log2(torch.minimum(127.49 / largest, room / total))
        self.shift.copy_(shift.floor().clamp(0, 16))

    def integers(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns weight, bias, shift of out = clamp((sum(weight * in) + bias) >> shift)."""
        weight, bias = self.folded()
        scale = torch.exp2(self.shift)
        weight = (weight * scale[:, None, None, None]).round().clamp(-127, 127)
        half = torch.where(self.shift > 0, scale / 2, torch.zeros_like(scale))
        return (
            weight.to(torch.int8),
            ((bias * scale).round() + half).to(torch.int32),
            self.shift.to(torch.uint8),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Integer activations -> real-valued result, to be rounded and clamped by the caller."""
        scale = torch.exp2(self.shift)
        if self.normalised and self.training and not self.frozen:
            with torch.no_grad():
                fold = self.fold()
                grid = (torch.where(fold.abs() < 1e-9, 1e-9, fold) * scale)[:, None, None, None]
                change = (self.weight * grid).round_().clamp_(-127, 127) / grid - self.weight
            x = self.convolve(x, self.weight + change)
            gain, bias = UNIT * self.gain, UNIT * self.bias
            return F.batch_norm(
                x, self.mean, self.variance, gain, bias, True, self.momentum, EPSILON
            )
        weight, bias = self.folded()
        with torch.no_grad():
            # A value plus its change to the nearest step is exactly that step in floats, too.
            grid = scale[:, None, None, None]
            weight_change = (weight * grid).round_().clamp_(-127, 127) / grid - weight
            bias_change = (bias * scale).round_() / scale - bias
        return self.convolve(x, weight + weight_change, bias + bias_change)

    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.conv2d(x, weight, bias, self.stride, self.padding, self.dilation)


class Network(nn.Module):
    """Grey pair -> logits of the candidates and of the confidence at 1/step of the size."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.plan = plan(config)
        layers = [layer for stage in self.plan.values() for layer in stage if layer["op"] == "conv"]
        self.convolutions = nn.ModuleDict({layer["output"]: Convolution(layer) for layer in layers})
        self.register_buffer("table", torch.tensor(TABLE, dtype=torch.float32), persistent=False)

    def freeze(self) -> None:
        """Ends normalisation by the statistics of the batch."""
        for convolution in self.convolutions.values():
            convolution.frozen = True

    def choose_shifts(self) -> None:
        for convolution in self.convolutions.values():
            convolution.choose_shifts()

    def pad(self, image: Tensor) -> Tensor:
        """Repeats the last row and column up to a multiple of config.multiple."""
        height, width = image.shape[-2:]
        multiple = self.config.multiple
        return F.pad(image, (0, (-width) % multiple, 0, (-height) % multiple), mode="replicate")

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Images (B,1,H,W) of 0..255 -> head (B, candidates + 1, h, w); the last is confidence."""
        planes = image_planes(self.pad(torch.cat([left, right])))
        values = self._run(self.plan["view"], {"planes": planes})
        trunk = self.plan["pair"][1]["inputs"][1]
        left_features, right_features = values["features"].chunk(2)
        values = {trunk: values[trunk].chunk(2)[0], "features": (left_features, right_features)}
        return self._run(self.plan["pair"], values)["head"]

    def _run(self, layers: list[dict], values: dict) -> dict:
        for layer in layers:
            inputs = [values[name] for name in layer["inputs"]]
            if layer["op"] == "correlate":
                compare = correlate_fast if torch.is_grad_enabled() else correlate
                result = compare(*inputs[0], layer["candidates"], layer["groups"], layer["shift"])
            elif layer["op"] == "double":
                result = F.interpolate(inputs[0], scale_factor=2, mode="nearest")
            else:
                x = torch.cat(inputs, 1) if len(inputs) > 1 else inputs[0]
                convolution = self.convolutions[layer["output"]]
                if layer["output"] in ("stem_0", "head"):  # bfloat16 would round large sums
                    with torch.autocast(x.device.type, enabled=False):
                        result = convolution(x.to(convolution.weight.dtype))
                else:
                    result = convolution(x)
                result = quantise(result, layer["low"], layer["high"])
                if layer["add"]:
                    result = F.hardtanh(values[layer["add"]] + result, 0, 127)
            values[layer["output"]] = result
        return values

    def _best(self, head: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns logits, their maximum, all candidates, and a mask of those near the best."""
        count = self.config.candidates
        logits = head[:, :count]
        candidate = torch.arange(count, device=head.device, dtype=head.dtype)[None, :, None, None]
        largest = logits.amax(1, keepdim=True)
        # The smallest of equally good candidates, on every device.
        best = count - ((logits == largest) * (count - candidate)).amax(1, keepdim=True)
        return logits, largest, candidate, (candidate - best).abs() <= REACH

    def decode(self, head: Tensor) -> tuple[Tensor, Tensor]:
        """Integer result: disparity in 1/16 candidates, confidence logit, both (B,1,h,w)."""
        logits, largest, candidate, near = self._best(head)
        weight = (
            self.table[(largest - logits).clamp(max=len(TABLE) - 1).long()].to(head.dtype) * near
        )
        total = weight.sum(1, keepdim=True)
        moment = (weight * candidate).sum(1, keepdim=True)
        return ((32 * moment + total) / (2 * total)).floor(), head[:, self.config.candidates :]

    def expected(self, head: Tensor) -> Tensor:
        """Differentiable form of the decoded disparity, in candidates, (B,1,h,w)."""
        logits, largest, candidate, near = self._best(head)
        weight = torch.exp((logits - largest) / UNIT) * near
        return (weight * candidate).sum(1, keepdim=True) / weight.sum(1, keepdim=True)


if __name__ == "__main__":
    for each in CONFIGS.values():
        adds, weights = work(each, 720, 1280)
        print(
            f"{each.name}: {weights / 1e6:.2f} M weights, {adds / 1e9:.1f} G multiply-adds at 720p"
        )
