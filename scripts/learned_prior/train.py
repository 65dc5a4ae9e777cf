"""Trains a network of network.py on procedural pairs, in pieces that continue each other.

    python train.py --config quarter --seconds 540 --total 1080 --out DIR
    python train.py --config quarter --seconds 540 --total 1080 --out DIR --resume DIR
    python train.py middlebury DATA OUT.npz       packs real pairs for --middlebury

DIR receives model.pt, optimiser.pt, curve.csv (every 30 s) and validation.csv (after each piece).
"""

import argparse
import csv
import json
import math
import pathlib
import shutil
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import scenes
from network import CONFIGS, UNIT, Config, Network

START = time.monotonic()
FREEZE_AT = 0.6  # share of the planned time after which batch normalisation uses fixed statistics
LEARNING_RATE, WARM_UP, WEIGHT_DECAY = 1e-3, 300, 1e-2  # peak, steps, for weights only
POOL = 3000  # pairs kept per size
REAL_SHARE = 0.15  # steps on real pairs, if there are any
REPORT, SAVE = 30, 150  # seconds
LARGEST_L1 = 12  # px; larger errors have no gradient


def cell_truth(disparity: Tensor, visible: Tensor, step: int) -> Tensor:
    """Full-size disparity in px (NaN unknown) and visibility, (B,1,H,W) -> (B,3,h,w) of cells.

    Channels: median disparity in px (NaN if most of the cell is unknown), range in px, visible.
    """
    cells = F.pixel_unshuffle(disparity, step)
    known = cells.isfinite()
    median = cells.nanmedian(1, keepdim=True).values
    median[known.float().mean(1, keepdim=True) < 0.5] = math.nan
    largest = cells.nan_to_num(-math.inf).amax(1, keepdim=True)
    span = largest - cells.nan_to_num(math.inf).amin(1, keepdim=True)
    seen = F.avg_pool2d(visible.float(), step) >= 0.5
    return torch.cat([median, span.nan_to_num(0, 0, 0), seen.float()], 1)


class Pool:
    """Generated pairs of one size in device memory: the newest `POOL`, read in random order."""

    def __init__(self, config: Config, height: int, width: int, dice: torch.Generator, device: str):
        self.config, self.size, self.dice, self.device = config, (height, width), dice, device
        self.images = torch.empty(POOL, 2, height, width, dtype=torch.uint8, device=device)
        self.truth = torch.empty(
            POOL, 3, height // config.step, width // config.step, device=device
        )
        self.made = 0

    def generate(self, count: int, generator: torch.Generator) -> None:
        share = 0.3 + 0.7 * torch.rand(1, generator=self.dice).item()
        largest = share * self.config.candidates * self.config.step
        left, right, disparity, visible = scenes.make(
            count, *self.size, largest, generator, self.device
        )
        at = (self.made + torch.arange(count, device=self.device)) % POOL
        self.images[at] = torch.cat([left, right], 1)
        self.truth[at] = cell_truth(disparity, visible, self.config.step)
        self.made += count

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Returns images (B,2,H,W) float and truth (B,3,h,w) of random pairs."""
        at = torch.randint(min(self.made, POOL), (count,), generator=self.dice).to(self.device)
        return self.images[at].float(), self.truth[at]


class RealPairs:
    """Random crops of real pairs in random scale."""

    def __init__(self, path: str, config: Config, dice: torch.Generator, device: str):
        self.config, self.dice = config, dice
        with np.load(path) as file:
            self.pairs = [
                tuple(
                    torch.from_numpy(file[f"{part}{i}"]).to(device) for part in ("l", "r", "d", "v")
                )
                for i in range(int(file["n"]))
            ]

    def draw(self, count: int, height: int, width: int) -> tuple[Tensor, Tensor]:
        images, disparities, visibles = [], [], []
        for _ in range(count):
            pair = torch.randint(len(self.pairs), (1,), generator=self.dice).item()
            scale, down, along = torch.rand(3, generator=self.dice).tolist()
            left, right, disparity, visible = self.pairs[pair]
            scale = math.exp(0.9 * scale - 0.2)
            rows, columns = (
                min(int(n / scale), have)
                for n, have in zip((height, width), left.shape, strict=True)
            )
            y = int(down * (left.shape[0] - rows + 1))
            x = int(along * (left.shape[1] - columns + 1))
            window = (slice(y, y + rows), slice(x, x + columns))
            views = torch.stack([left[window], right[window]])[None].float()
            truth = torch.stack([disparity[window], visible[window]])[None].float()
            images.append(F.interpolate(views, (height, width), mode="bilinear", antialias=True))
            truth = F.interpolate(truth, (height, width), mode="nearest")
            disparities.append(truth[:, :1] * (width / columns))
            visibles.append(truth[:, 1:])
        return torch.cat(images), cell_truth(
            torch.cat(disparities), torch.cat(visibles), self.config.step
        )


def augment(images: Tensor, truth: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Flips vertically, changes brightness and contrast of both views and of one, adds noise."""
    batch, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(batch, 1, 1, 1, generator=generator, device=device)

    flip = uniform(0, 1) < 0.5
    images, truth = (
        torch.where(flip, images.flip(2), images),
        torch.where(flip, truth.flip(2), truth),
    )
    gain, offset = torch.exp(uniform(-0.3, 0.3)), uniform(-20, 20)
    images = (images - 128) * gain + 128 + offset
    between = (uniform(0, 1) < 0.5).float()
    change = torch.exp(between * uniform(-0.12, 0.12))
    right = (images[:, 1:] - 128) * change + 128 + between * uniform(-15, 15)
    images = torch.cat([images[:, :1], right], 1)
    noise = torch.randn(images.shape, generator=generator, device=device)
    return (images + 4 * uniform(0, 1) ** 3 * noise).round().clamp(0, 255), truth


def losses(network: Network, head: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the loss, and sums for the report (see `COLUMNS`)."""
    config = network.config
    step, count = config.step, config.candidates
    disparity, span, visible = truth.split(1, 1)
    known = disparity.isfinite() & (disparity >= 0)
    disparity = disparity.nan_to_num(0)
    target = disparity / step
    within = known & (target <= count - 1)
    weight = within * (0.3 + 0.7 * visible)

    candidate = torch.arange(count, device=head.device)[None, :, None, None]
    soft = torch.softmax(-(candidate - target).abs() / 0.5, 1)
    cross_entropy = -(soft * F.log_softmax(head[:, :count] / UNIT, 1)).sum(1, keepdim=True)
    error = step * network.expected(head) - disparity
    # Cells with a depth edge have no single disparity.
    smooth = weight * (span <= step)
    l1 = F.smooth_l1_loss(error, torch.zeros_like(error), reduction="none").clamp(max=LARGEST_L1)
    wrong = error.detach().abs()
    right = (within & (wrong < config.right_within)).float()
    logit = head[:, count:] / UNIT
    confidence = F.binary_cross_entropy_with_logits(logit, right, reduction="none")

    parts = [
        (cross_entropy * weight).sum() / weight.sum().clamp(min=1),
        (l1 * smooth).sum() / smooth.sum().clamp(min=1),
        (confidence * known).sum() / known.sum().clamp(min=1),
    ]
    loss = parts[0] + 0.5 * parts[1] + 0.3 * parts[2]
    with torch.no_grad():
        seen, sure = within & (visible > 0), known & (logit >= 0)
        sums = [
            torch.ones_like(loss),
            loss,
            *parts,
            seen.sum(),
            (seen & (wrong > 1)).sum(),
            (seen & (wrong > 3)).sum(),
            known.sum(),
            sure.sum(),
            (sure & (right == 0)).sum(),
        ]
        return loss, torch.stack([x.float() for x in sums])


COLUMNS = [
    "loss",
    "cross_entropy",
    "l1",
    "confidence_loss",
    "wrong_1px",
    "wrong_3px",
    "sure",
    "sure_wrong",
]


def summary(sums: list[float]) -> dict[str, float]:
    """Returns mean losses, and shares in percent.

    wrong_*: of the visible cells; sure: of the known cells; sure_wrong: of the sure cells.
    """
    steps, *means, seen, wrong_1, wrong_3, known, sure, sure_wrong = sums
    shares = [
        wrong_1 / max(seen, 1),
        wrong_3 / max(seen, 1),
        sure / max(known, 1),
        sure_wrong / max(sure, 1),
    ]
    values = [x / max(steps, 1) for x in means] + [100 * x for x in shares]
    return {name: round(value, 3) for name, value in zip(COLUMNS, values, strict=True)}


def validation_pairs(
    config: Config, height: int, width: int, device: str
) -> list[tuple[Tensor, Tensor]]:
    """32 pairs from a fixed seed, two at a time: images (2,2,H,W) and truth."""
    generator = torch.Generator(device).manual_seed(987654321)
    pairs = []
    for i in range(16):
        largest = (0.4, 0.6, 0.8, 1.0)[i % 4] * config.candidates * config.step
        left, right, disparity, visible = scenes.make(2, height, width, largest, generator, device)
        pairs.append(
            (torch.cat([left, right], 1).float(), cell_truth(disparity, visible, config.step))
        )
    return pairs


@torch.no_grad()
def validate(network: Network, pairs: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Runs the integer arithmetic in float32."""
    network.eval()
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = False
    sums = sum(
        losses(network, network(images[:, :1], images[:, 1:]), truth)[1] for images, truth in pairs
    )
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    network.train()
    return summary(sums.tolist())


def pack_middlebury(data: pathlib.Path, out: str) -> None:
    """Packs the Middlebury pairs whose authors permit use; see README.md.

    Aloe, the third-size folder, and artl (the scene "art" of that folder) stay out, to evaluate.
    """
    import cv2

    items = sorted(data.glob("middlebury_v2/*/item.json")) + sorted(
        data.glob("more/middlebury_2005_2006_half/*/item.json")
    )
    arrays = {"n": np.array(len(items))}
    for i, path in enumerate(items):
        item = json.loads(path.read_text())
        names = item["left"], item["right"], item["gt"], item["masks"]["nonocc"]
        left, right, stored, mask = (
            cv2.imread(str(path.parent / name), cv2.IMREAD_GRAYSCALE) for name in names
        )
        disparity = np.where(
            stored == item.get("gt_invalid", -1), np.nan, stored / item["gt_scale"]
        )
        visible = np.isfinite(disparity) & (mask == 255)
        arrays |= {
            f"l{i}": left,
            f"r{i}": right,
            f"d{i}": disparity.astype(np.float16),
            f"v{i}": visible,
        }
        print(
            item["name"],
            left.shape,
            f"known {np.isfinite(disparity).mean():.3f}, visible {visible.mean():.3f},",
            f"largest {np.nanmax(disparity):.1f} px",
        )
    np.savez_compressed(out, **arrays)


def main() -> None:
    if sys.argv[1:2] == ["middlebury"]:
        return pack_middlebury(pathlib.Path(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", choices=CONFIGS, required=True)
    parser.add_argument(
        "--seconds", type=float, required=True, help="wall time of this piece, start-up included"
    )
    parser.add_argument(
        "--total", type=float, help="planned time of all pieces (default: this piece)"
    )
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--resume", type=pathlib.Path)
    parser.add_argument("--middlebury", metavar="FILE.npz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=24, help="pairs of the first size")
    parser.add_argument("--reuse", type=int, default=6, help="steps per generated batch")
    parser.add_argument("--sizes", default="256x512,320x640", help="crops, HEIGHTxWIDTH")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    config = CONFIGS[options.config]
    torch.manual_seed(options.seed)
    network = Network(config).to(device, memory_format=torch.channels_last)
    decayed = [p for p in network.parameters() if p.dim() > 1]
    other = [p for p in network.parameters() if p.dim() == 1]
    optimiser = torch.optim.AdamW(
        [dict(params=decayed, weight_decay=WEIGHT_DECAY), dict(params=other, weight_decay=0)],
        fused=device == "cuda",
    )
    dice = torch.Generator().manual_seed(options.seed)  # choices made on the host
    generator = torch.Generator(device).manual_seed(options.seed)
    before, total, steps, frozen = 0.0, options.total or options.seconds, 0, False
    if not options.resume:
        for name in ("curve.csv", "validation.csv"):
            (options.out / name).unlink(missing_ok=True)
    else:
        network.load_state_dict(
            torch.load(options.resume / "model.pt", map_location=device)["network"]
        )
        state = torch.load(options.resume / "optimiser.pt", map_location="cpu")
        optimiser.load_state_dict(state["optimiser"])
        dice.set_state(state["dice"])
        if state["device"] == device:
            generator.set_state(state["generator"])
        before, steps, frozen = state["trained"], state["steps"], state["frozen"]
        total = options.total or state["total"]
        if options.resume.resolve() != options.out.resolve():
            for name in ("curve.csv", "validation.csv"):
                if (options.resume / name).exists():
                    shutil.copy(options.resume / name, options.out / name)
    if frozen:
        network.freeze()

    # Time for validation and saving at the end.
    budget = options.seconds - min(15, 0.15 * options.seconds)

    def position() -> float:
        """Seconds of the plan that are done; the whole piece once the budget is spent."""
        return before + options.seconds * min(1, (time.monotonic() - START) / budget)

    def save() -> None:
        network.choose_shifts()
        torch.save(dict(config=config.name, network=network.state_dict()), options.out / "model.pt")
        torch.save(
            dict(
                optimiser=optimiser.state_dict(),
                dice=dice.get_state(),
                generator=generator.get_state(),
                device=device,
                trained=position(),
                total=total,
                steps=steps,
                frozen=frozen,
            ),
            options.out / "optimiser.pt",
        )

    def append(name: str, row: dict) -> None:
        new = not (options.out / name).exists()
        with open(options.out / name, "a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)

    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
    batches = [max(2, options.batch * sizes[0][0] * sizes[0][1] // (h * w)) for h, w in sizes]
    pools = [Pool(config, h, w, dice, device) for h, w in sizes]
    for pool, batch in zip(pools, batches, strict=True):
        for _ in range(8 if device == "cuda" else 2):
            pool.generate(batch, generator)
    real = RealPairs(options.middlebury, config, dice, device) if options.middlebury else None
    print(
        f"{config.name} on {device}, {batches} pairs of {sizes};",
        f"ready after {time.monotonic() - START:.0f} s",
        flush=True,
    )

    sums, reported, saved, steps_reported = 0, time.monotonic(), time.monotonic(), steps
    while time.monotonic() - START < budget:
        at = position() / total
        if at >= FREEZE_AT and not frozen:
            frozen = True
            network.freeze()
            print(f"step {steps}: statistics of batch normalisation are fixed now")
        rate = (
            LEARNING_RATE
            * min(1, (steps + 1) / WARM_UP)
            * (0.5 + 0.5 * math.cos(math.pi * min(1, at)))
        )
        for group in optimiser.param_groups:
            group["lr"] = max(rate, 1e-6)
        if not frozen:
            for convolution in network.convolutions.values():
                convolution.momentum = max(0.01, 1 / (steps + 1))
        if steps % 16 == 0:
            network.choose_shifts()

        which = torch.randint(len(sizes), (1,), generator=dice).item()
        if steps % options.reuse == 0:
            pools[which].generate(batches[which], generator)
        if real and torch.rand(1, generator=dice).item() < REAL_SHARE:
            images, truth = real.draw(batches[which], *sizes[which])
        else:
            images, truth = pools[which].draw(batches[which])
        images, truth = augment(images, truth, generator)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            head = network(images[:, :1], images[:, 1:])
        loss, step_sums = losses(network, head, truth)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        steps += 1
        sums = sums + step_sums

        now = time.monotonic()
        if now - reported >= REPORT or now - START >= budget:
            figures = summary(sums.tolist())  # waits for the device
            milliseconds = 1000 * (time.monotonic() - reported) / (steps - steps_reported)
            row = dict(
                trained=round(position()),
                step=steps,
                **figures,
                rate=f"{rate:.2e}",
                ms=round(milliseconds, 1),
            )
            append("curve.csv", row)
            print(" ".join(f"{name} {value}" for name, value in row.items()), flush=True)
            if not math.isfinite(figures["loss"]):
                sys.exit("The loss is not finite.")
            sums, reported, steps_reported = 0, time.monotonic(), steps
        if now - saved >= SAVE:
            save()
            saved = time.monotonic()
    save()
    result = dict(
        trained=round(position()),
        step=steps,
        **validate(network, validation_pairs(config, *sizes[0], device)),
    )
    append("validation.csv", result)
    print("validation:", json.dumps(result), f"after {time.monotonic() - START:.0f} s")


if __name__ == "__main__":
    main()
