"""Procedural stereo pairs with exact disparity, ray-cast on the GPU while training.

    python scenes.py SHEET.png [SEED]    writes examples of every kind of scene

A scene is a list of primitives (rectangles, cut-out sheets, boxes, ellipsoids, rods), each a unit
shape under its own affine map. One ray per sample is intersected with all of them; materials are
then evaluated once, at the nearest hit. Lengths are in units of the baseline, so that a point
at depth Z has the disparity f / Z. The camera axes are x right, y down, z forward.
"""

import math
import sys

import torch
import torch.nn.functional as F
from torch import Tensor

KINDS = {"room": 0.40, "street": 0.25, "objects": 0.20, "layers": 0.15}
RECT, SHEET, BOX, BALL, ROD, GLASS = range(6)  # a sheet is a rectangle with holes

# The texture stack: layers of SIZE x SIZE texels, each in LEVELS degrees of blur (a mip map whose
# levels all have the full size, so that one 3-D grid_sample reads texture and level).
SIZE, LEVELS = 256, 6
NOISE, STRIPES, CHECKS, TILES, BRICKS, TEXT, WINDOWS, PATCHES, CELLS, LATTICE, BARS = (
    range(0, 8), range(8, 10), range(10, 11), range(11, 13), range(13, 14), range(14, 16),
    range(16, 18), range(18, 20), range(20, 22), range(22, 23), range(23, 24))
LAYERS = 24
MATERIAL = ("grey", "layer", "contrast", "texel", "layer2", "contrast2", "texel2", "du", "dv",
            "mirror", "gloss", "threshold", "round")


# ---- Textures ------------------------------------------------------------------------------------

def texture_stack(generator: torch.Generator, device) -> Tensor:
    """Draws all texture layers. Returns (1, 1, LAYERS * LEVELS, SIZE + 1, SIZE + 1), tileable,
    with mean 0 and deviation 1 a layer, but LATTICE and BARS run from 0 (bar) to 1 (hole)."""
    def rand(*shape, low=0.0, high=1.0):
        return torch.rand(*shape, generator=generator, device=device) * (high - low) + low

    def pick(low, high, n):  # integers low..high-1 of shape (n, 1, 1)
        return torch.randint(low, high, (n, 1, 1), generator=generator, device=device)

    def cells(values, row, column):  # the grid values (n, R, C) read at integer coordinates
        n, rows, columns = values.shape
        index = (row % rows) * columns + column % columns
        return values.flatten(1).gather(1, index.expand(n, SIZE, SIZE).flatten(1)).view(n, SIZE,
                SIZE)

    axis = torch.arange(SIZE, device=device)
    y, x = axis.view(1, SIZE, 1), axis.view(1, 1, SIZE)
    fy = torch.fft.fftfreq(SIZE, device=device).view(1, SIZE, 1)
    fx = torch.fft.rfftfreq(SIZE, device=device).view(1, 1, -1)
    radius = (fx * fx + fy * fy).sqrt()

    # Noise with the spectrum 1 / f^slope, white to cloudy; some of it stretched like wood grain.
    n = len(NOISE)
    slope = torch.linspace(0.3, 2.4, n, device=device).view(n, 1, 1) + rand(n, 1, 1, low=-0.3,
            high=0.3)
    stretch = torch.where(rand(n, 1, 1) < 0.25, 12.0, 1.0)
    white = torch.randn(n, SIZE, SIZE, generator=generator, device=device)
    spectrum = torch.fft.rfft2(white) / ((fx * fx + (fy * stretch) ** 2).sqrt() + 0.004) ** slope
    noise = torch.fft.irfft2(spectrum, s=(SIZE, SIZE))

    n = len(STRIPES)
    turns = 2 ** pick(2, 6, n)
    wave = torch.sin((x * turns + y * pick(-3, 4, n)) * (2 * math.pi / SIZE))
    stripes = torch.where(rand(n, 1, 1) < 0.5, wave, (wave * 6).clamp(-1, 1))
    side = 2 ** pick(3, 6, 1)
    checks = ((x // side + y // side) % 2).float()

    n = len(TILES)  # square tiles with joints: all alike, or of slightly different greys
    side = 2 ** pick(4, 7, n)
    joint = ((x % side < 2) | (y % side < 2)).float()
    tiles = cells(rand(n, 16, 16), y // side, x // side) * rand(n, 1, 1) ** 2 - joint * rand(n, 1,
            1, high=2)

    shifted = x + (y // 16 % 2) * 16
    mortar = ((y % 16 < 2) | (shifted % 32 < 2)).float()
    bricks = cells(rand(1, 16, 8), y // 16, shifted // 32 % 8) * 0.7 - mortar

    n = len(TEXT)  # lines of words of letters, on paper or dark ground
    line, letter = y // 11, (y % 11 < 7)
    words = cells(rand(n, 24, 40), line, x // 7) > 0.25
    strokes = cells(rand(n, 128, 128), y // 2, x // 2) > 0.45
    paragraph = cells(rand(n, 4, 4), y // 66, x // 64) > 0.3
    text = (words & strokes & paragraph & letter).float() * torch.where(rand(n, 1, 1) < 0.7, -1.0,
            1.0)

    n = len(WINDOWS)
    side, margin = 2 ** pick(5, 7, n), rand(n, 1, 1, low=0.12, high=0.3)
    across, down = (x % side) / side, (y % side) / side
    pane = (across > margin) & (across < 1 - margin) & (down > margin) & (down < 0.85)
    frame = pane & (((across - 0.5).abs() < 0.03) | ((down - margin).abs() < 0.05))
    glass = cells(rand(n, 8, 8), y // side, x // side) * 0.8
    windows = torch.where(pane, torch.where(frame, 0.6, glass - 0.9), 0.15)

    n = len(PATCHES)  # overlapping rectangles, as in posters, shelves and goods
    patches = torch.zeros(n, SIZE, SIZE, device=device)
    for _ in range(48):
        inside = ((x + pick(0, SIZE, n)) % SIZE < pick(6, 90, n)) & ((y
                + pick(0, SIZE, n)) % SIZE < pick(6, 60, n))
        patches = torch.where(inside, rand(n, 1, 1, low=-1), patches)

    n, count = len(CELLS), 160  # leaves, gravel, stones: distance to the nearest of random points
    px, py = rand(n, count, 1, 1) * SIZE, rand(n, count, 1, 1) * SIZE
    apart_x = ((x[:, None] - px + SIZE / 2) % SIZE - SIZE / 2)
    apart_y = ((y[:, None] - py + SIZE / 2) % SIZE - SIZE / 2)
    distance, nearest = (apart_x ** 2 + apart_y ** 2).min(1)
    shade = rand(n, count).gather(1, nearest.flatten(1)).view(n, SIZE, SIZE)
    leaves = shade * 2 - distance.sqrt() / 12

    pitch = 32
    saw_x, saw_y = (x % pitch - pitch / 2).abs() * 2 / pitch, (y % pitch - pitch
            / 2).abs() * 2 / pitch
    lattice = torch.minimum(saw_x, saw_y)
    bars = saw_x.expand(1, SIZE, SIZE)

    drawn = torch.cat([noise, stripes, checks, tiles, bricks, text, windows, patches, leaves])
    drawn = drawn - drawn.mean((1, 2), keepdim=True)
    drawn = (drawn / (drawn.std((1, 2), keepdim=True) + 1e-3)).clamp(-3, 3)
    layers = torch.cat([drawn, lattice, bars])
    sigma = torch.tensor([0.0] + [0.45 * 2 ** k for k in range(1, LEVELS)], device=device).view(-1,
            1, 1)
    blur = torch.exp(-2 * (math.pi * sigma * radius) ** 2)
    stack = torch.fft.irfft2(torch.fft.rfft2(layers)[:, None] * blur, s=(SIZE, SIZE))
    return F.pad(stack.view(1, 1, LAYERS * LEVELS, SIZE, SIZE), (0, 1, 0, 1, 0, 0), mode="circular")


def sample_texture(stack: Tensor, layer: Tensor, level: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Reads the stack at (u, v) texels (any value: it repeats); `level` in 0..LEVELS-1."""
    def signed(t, end):  # 0..end to -1..1
        return t * (2 / end) - 1

    u, v = u * (1 / SIZE), v * (1 / SIZE)
    grid = torch.stack([(u - u.floor()) * 2 - 1, (v - v.floor()) * 2 - 1,
                        signed(layer * LEVELS + level, LAYERS * LEVELS - 1).expand(u.shape)], -1)
    out = F.grid_sample(stack, grid.view(1, 1, 1, -1, 3), align_corners=True)
    return out.view(u.shape)


# ---- Scenes: small tables on the CPU -------------------------------------------------------------

def rotation(yaw: Tensor, pitch: Tensor, roll: Tensor) -> Tensor:
    """Rotation matrices (..., 3, 3): roll about z first, then pitch about x, then yaw about y."""
    one, nil = torch.ones_like(yaw), torch.zeros_like(yaw)

    def matrix(*entries):
        return torch.stack(entries, -1).unflatten(-1, (3, 3))

    c, s = torch.cos, torch.sin
    about_y = matrix(c(yaw), nil, s(yaw), nil, one, nil, -s(yaw), nil, c(yaw))
    about_x = matrix(one, nil, nil, nil, c(pitch), -s(pitch), nil, s(pitch), c(pitch))
    about_z = matrix(c(roll), -s(roll), nil, s(roll), c(roll), nil, nil, nil, one)
    return about_y @ about_x @ about_z


class Scene:
    """Primitives of a batch of scenes. All items have the same shapes in other poses."""

    def __init__(self, batch: int, height: int, width: int, largest: float,
            generator: torch.Generator):
        self.batch, self.height, self.width, self.largest = batch, height, width, largest
        self.generator = generator
        self.focal = self.uniform(1, 0.6, 1.15) * width  # (B, 1) px
        self.shapes: list[int] = []
        self.tables: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self.turn = rotation(*torch.zeros(3, batch, 1))  # of the world before the camera
        self.light = torch.zeros(batch, 3)
        self.reach = torch.full((batch, 1), 1e9)  # of a lamp; infinite for the sun

    def uniform(self, n: int, low=0.0, high=1.0) -> Tensor:
        """Random (B, n) between low and high."""
        return torch.rand(self.batch, n, generator=self.generator) * (high - low) + low

    def log_uniform(self, n: int, low: float, high: float) -> Tensor:
        return torch.exp(self.uniform(n, math.log(low), math.log(high)))

    def chance(self, n: int, share: float) -> Tensor:
        return self.uniform(n) < share

    def choose(self, n: int, *ranges: range) -> Tensor:
        """Random texture layers out of ranges, each range equally likely."""
        table = torch.tensor([[r[int(i * len(r) / 8)] for i in range(8)] for r in ranges])
        row = torch.randint(len(ranges), (self.batch, n), generator=self.generator)
        column = torch.randint(8, (self.batch, n), generator=self.generator)
        return table[row, column].float()

    def any_turn(self, n: int) -> Tensor:
        return rotation(self.uniform(n, -math.pi, math.pi), torch.asin(self.uniform(n, -1, 1)),
                        self.uniform(n, -math.pi, math.pi))

    def upright(self, n: int) -> Tensor:
        """Rotations about the vertical axis (boxes and sheets; for rods see `standing_rod`)."""
        zero = torch.zeros(self.batch, n)
        return rotation(self.uniform(n, -math.pi, math.pi), zero, zero)

    def material(self, n: int, bare=0.15, layers=(NOISE, NOISE, NOISE, STRIPES, CHECKS, TILES,
            BRICKS, TEXT,
                                                PATCHES, PATCHES, CELLS, CELLS),
                 contrast=(4.0, 50.0), mirror=0.12) -> dict[str, Tensor]:
        """Random materials: a share is bare, a share mirrors. Texel sizes are in px for now."""
        plain = self.chance(n, bare)
        grain = torch.where(plain, self.log_uniform(n, 0.2, 2.0), self.log_uniform(n, 0.6, 18.0))
        mirrors = self.chance(n, mirror)
        return {"grey": self.uniform(n, 25, 215), "layer": self.choose(n, *layers),
                "contrast": torch.where(plain, self.uniform(n, 0.0, 1.0),
                self.log_uniform(n, *contrast)), "texel": self.log_uniform(n, 0.5, 3.5),
                "layer2": self.choose(n, NOISE), "contrast2": grain,
                "texel2": self.log_uniform(n, 0.7, 4.0), "du": self.uniform(n, 0, SIZE),
                "dv": self.uniform(n, 0, SIZE), "mirror": torch.where(mirrors,
                self.uniform(n, 0.15, 0.9), 0.0), "gloss": torch.where(mirrors | self.chance(n,
                0.2), self.uniform(n, 0, 140), 0.0), "threshold": self.uniform(n, 0.12, 0.4),
                "round": torch.zeros(self.batch, n),}

    def add(self, shape: int, centre: Tensor, turn: Tensor, half: Tensor,
            material: dict[str, Tensor],
            present: Tensor | None = None, texel_at: Tensor | None = None) -> None:
        """Adds n primitives: centres (B, n, 3), rotations (B, n, 3, 3), half sizes (B, n, 3).

        Texel sizes in px count at the disparity `texel_at` (B, n), the centre's if None."""
        n = centre.shape[1]
        at = texel_at if texel_at is not None else self.focal / centre.norm(dim=-1)
        values = dict(material, texel=material["texel"] / at, texel2=material["texel2"] / at)
        table = torch.stack([values[name].expand(self.batch, n) for name in MATERIAL], -1)
        if present is not None:  # absent ones go behind the camera
            centre = torch.where(present[..., None], centre, torch.tensor([0.0, 0.0, -1e4]))
            half = torch.where(present[..., None], half, torch.ones(3))
        self.shapes += [shape] * n
        self.tables.append((centre, turn, half, table))

    def float_at(self, n: int, radius_px: Tensor, low: Tensor | float, high: Tensor | float,
                 power=1.4) -> tuple[Tensor, Tensor, Tensor]:
        """Draws poses in the field of view, the front at disparities between low and high (px).

        Returns centres (B, n, 3), sizes (B, n) of `radius_px` there, disparities (B, n)."""
        d = low + (high - low) * self.uniform(n) ** power
        size = radius_px / d
        depth = self.focal / d + size
        x = self.uniform(n, -0.55, 0.55) * self.width / self.focal * depth
        y = self.uniform(n, -0.5, 0.5) * self.height / self.focal * depth
        return torch.stack([x, y, depth], -1), size, d

    def point(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return torch.stack(torch.broadcast_tensors(x, y, z), -1)

    def plane_distance(self, normal: tuple[float, float, float], nearest: Tensor) -> Tensor:
        """Distance (B, 1) of a plane of the world whose nearest point in view has the disparity
        `nearest` (B, 1). With the normal n in camera axes, d = (n_x x + n_y y + n_z f) / distance.
        """
        n = (self.turn[:, 0] @ torch.tensor(normal))[:, :, None]  # (B, 3, 1)
        corner = n[:, 0].abs() * self.width / 2 + n[:, 1].abs() * self.height / 2 + n[:,
                2] * self.focal
        return corner.clamp(min=self.height / 8) / nearest

    def background(self, d: Tensor, yaw: float, pitch: float, **material) -> None:
        """A plane without end at the disparity d (B, 1) in the middle, the first primitive."""
        turn = rotation(self.uniform(1, -yaw, yaw), self.uniform(1, -pitch, pitch),
                torch.zeros(self.batch, 1))
        zero = torch.zeros(self.batch, 1)
        self.add(RECT, self.point(zero, zero, self.focal / d), turn,
                torch.full((self.batch, 1, 3), 3e4), self.material(1, **material), texel_at=d)

    # -- things made of several primitives

    def standing_rods(self, x, z, floor, tall, radius, material, present=None) -> None:
        """Vertical cylinders from the floor (y, downwards) up; all (B, n)."""
        n = x.shape[1]
        turn = rotation(*(torch.full((self.batch, n), a) for a in (0.0, math.pi / 2, 0.0)))
        half = self.point(radius, radius, tall / 2)
        self.add(ROD, self.point(x, floor - tall / 2, z), turn, half, material, present)

    def floating(self, boxes: int, balls: int, rods: int, rects: int, sheets: int, low, high,
            size=0.16) -> None:
        """Things in random poses anywhere in view."""
        def shaped(n, thin):
            px = self.log_uniform(n, 6, size * self.width)
            centre, r, d = self.float_at(n, px, low, high)
            return centre, torch.stack([r * self.uniform(n, thin, 1) for _ in range(3)], -1), d

        for shape, n in ((BOX, boxes), (BALL, balls)):
            if n:
                centre, half, _ = shaped(n, 0.25)
                self.add(shape, centre, self.any_turn(n), half, self.material(n))
        if rods:
            long_px = self.log_uniform(rods, 20, 0.4 * self.width)
            centre, _, d = self.float_at(rods, long_px * 0.3, low, high)
            thick = self.log_uniform(rods, 0.6, 4.0) / d
            self.add(ROD, centre, self.any_turn(rods), self.point(thick, thick, long_px / d),
                     self.material(rods, bare=0.6))
        for shape, n in ((RECT, rects), (SHEET, sheets)):
            if n:
                px = self.log_uniform(n, 14, 1.3 * size * self.width)
                centre, r, d = self.float_at(n, px, low, high)
                turn = rotation(self.uniform(n, -1.1, 1.1), self.uniform(n, -0.9, 0.9),
                        self.uniform(n, -0.6, 0.6))
                half = self.point(r * self.uniform(n, 0.4, 1), r * self.uniform(n, 0.4, 1), r)
                self.add(shape, centre, turn, half, self.cut_out(n) if shape == SHEET
                        else self.material(n))

    def cut_out(self, n: int, foliage=0.5) -> dict[str, Tensor]:
        """Materials of sheets with holes: `layer` is the mask, the colour is `layer2` alone."""
        leafy = self.chance(n, foliage)
        m = self.material(n)
        m["layer"] = torch.where(leafy, self.choose(n, NOISE[3:6], CELLS),
                self.choose(n, LATTICE, BARS))
        m["threshold"] = torch.where(leafy, self.uniform(n, -0.2, 0.8), m["threshold"])
        m["round"] = torch.where(leafy, 4.0,
                0.0)  # foliage gets thinner outwards and has no corners
        m["texel"] = torch.where(leafy, self.log_uniform(n, 0.7, 2.0),
                self.log_uniform(n, 0.4, 1.8))
        m["contrast"] = torch.zeros_like(m["contrast"])
        m["contrast2"] = self.log_uniform(n, 0.5, 25)
        return m

    def plant(self, leaves: int, centre: Tensor, size: Tensor, present: Tensor) -> None:
        """A cluster of flat ellipsoids about one centre (B, 1, 3) of one size (B, 1)."""
        spread = torch.stack([self.uniform(leaves, -0.6, 0.6) for _ in range(3)], -1) * size[...,
                None]
        r = size * self.uniform(leaves, 0.2, 0.5)
        m = self.material(leaves, bare=0.4, mirror=0.05, layers=(NOISE, CELLS))
        m["grey"] = self.uniform(1, 40, 130) + self.uniform(leaves, -25, 25)
        self.add(BALL, centre + spread, self.any_turn(leaves), self.point(r, r * 0.5, r * 0.12), m,
                 present.expand(self.batch, leaves))


def build_room(s: Scene) -> None:
    """Floor, ceiling and three walls, furniture, floating objects."""
    D = s.largest
    s.turn = rotation(s.uniform(1, -0.5, 0.5), s.uniform(1, -0.22, 0.22), s.uniform(1, -0.04, 0.04))
    far = s.plane_distance((0.0, 0.0, 1.0), s.uniform(1, 0.05, 0.45) * D)
    d_far = s.focal / far
    floor = s.plane_distance((0.0, 1.0, 0.0), s.uniform(1, 0.3, 1.0) * D)
    ceiling = -s.plane_distance((0.0, -1.0, 0.0), s.uniform(1, 0.2, 0.9) * D)
    left = -s.plane_distance((-1.0, 0.0, 0.0), s.uniform(1, 0.2, 1.0) * D)
    right = s.plane_distance((1.0, 0.0, 0.0), s.uniform(1, 0.2, 1.0) * D)
    zero, quarter = torch.zeros(s.batch, 1), torch.full((s.batch, 1), math.pi / 2)
    s.light = torch.cat([s.uniform(1, -0.8, 0.8) * right, ceiling * s.uniform(1, 0.2, 0.9), far
            * s.uniform(1, 0.1, 0.8)], 1)
    s.reach = far * s.uniform(1, 0.7, 2.5)

    wall = dict(bare=0.4, contrast=(2.0, 40.0), mirror=0.06)
    level = rotation(zero, quarter, zero)
    side = rotation(quarter, zero, zero)
    endless = torch.full((s.batch, 1, 3), 1e3)
    middle = far * 0.4
    s.add(RECT, s.point(zero, zero, far), rotation(zero, zero, zero), endless,
            s.material(1, **wall), texel_at=d_far)
    s.add(RECT, s.point(zero, floor, middle), level, endless,
            s.material(1, bare=0.35, mirror=0.25, layers=(NOISE, TILES, TILES, STRIPES, CHECKS,
            CELLS)), texel_at=d_far * 2)
    s.add(RECT, s.point(zero, ceiling, middle), level, endless, s.material(1, **wall),
            texel_at=d_far * 2)
    s.add(RECT, s.point(left, zero, middle), side, endless, s.material(1, **wall),
            texel_at=d_far * 2)
    s.add(RECT, s.point(right, zero, middle), side, endless, s.material(1, **wall),
            texel_at=d_far * 2)

    def between(a, b, n, margin=0.1):
        return a + (b - a) * s.uniform(n, margin, 1 - margin)

    # Posters, doors, windows and mirrors on the walls, just in front of them.
    hung = dict(bare=0.15, layers=(TEXT, TEXT, PATCHES, NOISE, WINDOWS, STRIPES), mirror=0.3)
    n = 3
    size = s.point((right - left) * s.uniform(n, 0.05, 0.2), (floor - ceiling)
            * s.uniform(n, 0.08, 0.3), far)
    s.add(RECT, s.point(between(left, right, n), between(ceiling, floor, n), far * 0.995),
            rotation(*torch.zeros(3, s.batch, n)), size, s.material(n, **hung), s.chance(n, 0.7))
    x = torch.where(s.chance(2, 0.5), left * 0.995, right * 0.995)
    size = s.point(far * s.uniform(2, 0.05, 0.15), (floor - ceiling) * s.uniform(2, 0.1, 0.3), far)
    s.add(RECT, s.point(x, between(ceiling, floor, 2), far * s.uniform(2, 0.3, 0.9)),
            side.expand(-1, 2, -1, -1), size, s.material(2, **hung), s.chance(2, 0.7))

    # Furniture: boxes on the floor, a table on four thin legs, a lamp pole.
    n = 5
    near = s.focal / (0.8 * D)
    z = near + (far - near) * s.uniform(n, 0.15, 0.95)
    x = between(left, right, n)
    tall = (floor - ceiling) * s.uniform(n, 0.1, 0.6)
    wide = (right - left) * s.uniform(n, 0.04, 0.16)
    s.add(BOX, s.point(x, floor - tall / 2, z), s.upright(n),
            s.point(wide, tall / 2, wide * s.uniform(n, 0.4, 1.3)), s.material(n, bare=0.45),
            s.chance(n, 0.75))
    x, z = between(left, right, 1, 0.25), near + (far - near) * s.uniform(1, 0.25, 0.8)
    high, wide, deep = (floor - ceiling) * s.uniform(1, 0.2, 0.45), (right - left) * s.uniform(1,
            0.08, 0.2), far * s.uniform(1, 0.06, 0.15)
    table = s.chance(1, 0.6)
    straight = rotation(*torch.zeros(3, s.batch, 1))
    s.add(BOX, s.point(x, floor - high, z), straight, s.point(wide, high * 0.04, deep),
            s.material(1, mirror=0.3), table)
    corner = torch.tensor([[-0.9, -0.9], [0.9, -0.9], [-0.9, 0.9], [0.9, 0.9]])
    legs = s.material(4, bare=0.8)
    legs["grey"] = legs["grey"][:, :1].expand(-1, 4)
    thick = s.uniform(1, 0.6, 3.0) * z / s.focal
    s.standing_rods(x + wide * corner[:, 0], z + deep * corner[:, 1], floor, high,
            thick.expand(-1, 4), legs, table.expand(-1, 4))
    z = near + (far - near) * s.uniform(1, 0.1, 0.9)
    s.standing_rods(between(left, right, 1), z, floor, (floor - ceiling) * s.uniform(1, 0.5, 1),
            s.uniform(1, 0.6, 3.0) * z / s.focal, s.material(1, bare=0.7), s.chance(1, 0.6))
    z = near + (far - near) * s.uniform(1, 0.2, 0.8)
    s.plant(14, s.point(between(left, right, 1), floor * s.uniform(1, 0.2, 0.8), z), far
            * s.uniform(1, 0.05, 0.12), s.chance(1, 0.5))
    s.floating(boxes=6, balls=5, rods=4, rects=3, sheets=1, low=d_far * 1.15, high=0.97 * D,
            size=0.16)
    glass(s, s.point(between(left, right, 1), zero, near + (far - near) * s.uniform(1, 0.2, 0.7)),
            far * 0.15, 0.3)


def build_street(s: Scene) -> None:
    """Ground, house fronts, cars, poles, pedestrians, trees, sky. Unit: the camera's height."""
    D = s.largest
    s.turn = rotation(s.uniform(1, -0.25, 0.25), s.uniform(1, -0.1, 0.1), s.uniform(1, -0.03, 0.03))
    h = s.plane_distance((0.0, 1.0, 0.0), s.uniform(1, 0.35, 1.0) * D)
    near = s.focal / (0.85 * D)
    zero, one = torch.zeros(s.batch, 1), torch.ones(s.batch, 1)
    sun = torch.cat([s.uniform(1, -1, 1), s.uniform(1, -1, -0.2), s.uniform(1, -1, 0.6)], 1)
    s.light = sun * 1e4
    depth = near * s.log_uniform(1, 6, 25)  # length of the street

    # The sky is one bare or softly clouded plane, far behind everything.
    far = torch.minimum(s.focal / s.uniform(1, 0.15, 1.2), depth * 10)
    sky = s.material(1, bare=0.4, layers=(NOISE[6:8],), contrast=(1.0, 20.0), mirror=0)
    sky.update(grey=s.uniform(1, 150, 245), texel=s.uniform(1, 2, 5),
            contrast2=s.uniform(1, 0, 0.6), gloss=zero)
    s.add(RECT, s.point(zero, zero, far), rotation(zero, zero, zero),
            torch.full((s.batch, 1, 3), 3e4), sky, texel_at=s.focal / far)
    ground = s.material(1, bare=0.3, layers=(NOISE, NOISE, TILES, CELLS), contrast=(2.0, 25.0),
            mirror=0.15)
    s.add(RECT, s.point(zero, h, depth), rotation(zero, math.pi / 2 * one, zero),
            torch.full((s.batch, 1, 3), 3e3), ground, texel_at=s.focal / (near * 3))
    paint = s.material(3, bare=1.0, mirror=0.05)  # lane markings, a hair above the ground
    paint["grey"] = s.uniform(3, 160, 235)
    s.add(RECT, s.point(s.uniform(3, -4, 4) * h, h * 0.998, depth * s.uniform(3, 0.1, 0.5)),
            rotation(zero.expand(-1, 3), math.pi / 2 * torch.ones(s.batch, 3),
            torch.zeros(s.batch, 3)), s.point(h * s.uniform(3, 0.04, 0.12), depth
            * s.uniform(3, 0.05, 0.5), h), paint, s.chance(3, 0.7))

    # Houses: three boxes a side, one after the other, of different widths and heights.
    n = 3
    for sign in (-1.0, 1.0):
        length = depth * s.uniform(n, 0.15, 0.45)
        z = torch.cumsum(length, 1) - length / 2 + near * s.uniform(1, -0.5, 2)
        tall, front = h * s.log_uniform(n, 2, 9), h * s.log_uniform(1, 1.5, 7) * s.uniform(n, 1,
                1.3)
        m = s.material(n, bare=0.2, layers=(WINDOWS, WINDOWS, WINDOWS, BRICKS, NOISE, PATCHES),
                contrast=(6.0, 55.0), mirror=0.08)
        s.add(BOX, s.point(sign * (front + h * 2), h - tall / 2, z),
                rotation(s.uniform(n, -0.03, 0.03), *torch.zeros(2, s.batch, n)),
                s.point(2 * h.expand(-1, n), tall / 2, length * s.uniform(n, 0.4, 0.5)), m,
                s.chance(n, 0.85), texel_at=s.focal / (near + 0.3 * depth).expand(-1, n))
    m = s.material(1, bare=0.3, layers=(WINDOWS, NOISE, PATCHES))
    s.add(BOX, s.point(s.uniform(1, -4, 4) * h, h - h, depth * 1.3), rotation(zero, zero, zero),
          s.point(h * s.log_uniform(1, 3, 15), h * s.uniform(1, 1, 4), h), m, s.chance(1, 0.7))

    # Cars: body, domed or straight cabin of glass, two axles with wheels.
    n = 4
    z = near + (depth - near) * s.uniform(n, 0.02, 0.7) ** 1.5 + 1.3 * h
    x = s.uniform(n, -1, 1) * torch.minimum(4 * h, 0.5 * s.width / s.focal * z)
    scale = h * s.uniform(n, 0.75, 1.3)
    turn = torch.where(s.chance(n, 0.75), s.uniform(n, -0.15, 0.15),
            s.uniform(n, -math.pi, math.pi))
    heading = rotation(turn, *torch.zeros(2, s.batch, n))
    there = s.chance(n, 0.75)
    body = s.material(n, bare=0.97, mirror=0.9)
    cabin = s.material(n, bare=1.0, mirror=1.0)
    cabin.update(grey=s.uniform(n, 10, 80), mirror=s.uniform(n, 0.5, 0.9),
            gloss=s.uniform(n, 60, 200))

    def on_car(along_x, up, along_z):  # car coordinates, in units of its scale, to the world
        offset = (heading @ torch.stack(torch.broadcast_tensors(along_x, up, along_z), -1)[...,
                None])[..., 0]
        return s.point(x, h.expand(-1, n), z) + offset * scale[..., None]

    nil, full = torch.zeros(s.batch, n), torch.ones(s.batch, n)
    s.add(BOX, on_car(nil, -0.36 * full, nil), heading, s.point(0.52 * scale, 0.2 * scale, 1.25
            * scale), body, there)
    domed = s.chance(n, 0.5)
    s.add(BALL, on_car(nil, -0.55 * full, 0.1 * full), heading,
            s.point(0.48 * scale, 0.4 * scale, 0.9 * scale), cabin, there & domed)
    s.add(BOX, on_car(nil, -0.72 * full, 0.2 * full), heading,
            s.point(0.45 * scale, 0.18 * scale, 0.7 * scale), cabin, there & ~domed)
    wheel = s.material(n, bare=0.9, mirror=0.1)
    wheel["grey"] = s.uniform(n, 8, 50)
    axle = heading @ rotation(torch.full((s.batch, n), math.pi / 2), nil, nil)
    for end in (-0.8, 0.8):
        s.add(ROD, on_car(nil, -0.19 * full, end * full), axle,
                s.point(0.19 * scale, 0.19 * scale, 0.54 * scale), wheel, there)

    # Poles, pedestrians (body and head), trees (trunk and crown of cut-out sheets and leaves).
    n = 5
    z = near + (depth - near) * s.uniform(n, 0, 0.6) ** 1.5
    x = s.uniform(n, -0.6, 0.6) * s.width / s.focal * z
    s.standing_rods(x, z, h, h * s.uniform(n, 1, 5), s.log_uniform(n, 0.5, 3.5) * z / s.focal,
            s.material(n, bare=0.7), s.chance(n, 0.8))
    n = 3
    z = near + (depth - near) * s.uniform(n, 0.02, 0.5) ** 1.5 + h * 0.3
    x = s.uniform(n, -0.5, 0.5) * s.width / s.focal * z
    there, tall = s.chance(n, 0.7), h * s.uniform(n, 0.8, 1.15)
    s.add(BALL, s.point(x, h - tall * 0.42, z), s.upright(n),
            s.point(tall * 0.16, tall * 0.43, tall * 0.12), s.material(n,
            layers=(NOISE, STRIPES, PATCHES), mirror=0), there)
    s.add(BALL, s.point(x, h - tall * 0.92, z), s.upright(n),
            s.point(tall * 0.06, tall * 0.08, tall * 0.07), s.material(n, bare=0.8, mirror=0),
            there)
    n = 2
    z = near + (depth - near) * s.uniform(n, 0.05, 0.6)
    x = s.uniform(n, -0.6, 0.6) * s.width / s.focal * z
    there, tall = s.chance(n, 0.7), h * s.uniform(n, 1.2, 3)
    s.standing_rods(x, z, h, tall, h * s.uniform(n, 0.05, 0.15),
            s.material(n, bare=0.3, layers=(NOISE, BRICKS), mirror=0), there)
    for k in range(2):
        crown = s.cut_out(n, foliage=1.0)
        crown["grey"] = s.uniform(n, 40, 120)
        at = s.point(x + h * s.uniform(n, -0.4, 0.4), h - tall * s.uniform(n, 0.9, 1.2), z + h
                * s.uniform(n, -0.5, 0.5))
        size = h * s.uniform(n, 0.4, 1.3)
        s.add(SHEET, at, rotation(s.uniform(n, -1, 1), s.uniform(n, -0.4, 0.4),
                s.uniform(n, -1, 1)), s.point(size, size, size), crown, there)
    z = near + (depth - near) * s.uniform(1, 0.05, 0.4)
    s.plant(10, s.point(s.uniform(1, -0.5, 0.5) * s.width / s.focal * z, h * 0.6, z), h
            * s.uniform(1, 0.3, 0.6), s.chance(1, 0.5))
    fence = s.cut_out(1, foliage=0.0)
    z = near + (depth - near) * s.uniform(1, 0.05, 0.5)
    s.add(SHEET, s.point(s.uniform(1, -0.4, 0.4) * s.width / s.focal * z, h * 0.5, z),
            rotation(s.uniform(1, -1.2, 1.2), zero, zero), s.point(h * s.uniform(1, 1, 4), h * 0.5,
            h), fence, s.chance(1, 0.5))
    glass(s, s.point(s.uniform(1, -2, 2) * h, h * 0.2, near * s.uniform(1, 1.2, 4)), h * 0.8, 0.2)


def glass(s: Scene, centre: Tensor, size: Tensor, share: float) -> None:
    """One clear pane: it reflects, and the disparity is that of what is behind."""
    turn = rotation(s.uniform(1, -0.8, 0.8), torch.zeros(s.batch, 1), torch.zeros(s.batch, 1))
    m = s.material(1, bare=1.0, mirror=1.0)
    m["mirror"] = s.uniform(1, 0.08, 0.45)
    s.add(GLASS, centre, turn, s.point(size, size * s.uniform(1, 0.5, 1.2), size), m,
            s.chance(1, share))


def build_objects(s: Scene) -> None:
    """Many floating things before a slanted background."""
    d = s.uniform(1, 0.04, 0.5) * s.largest
    s.light = torch.cat([s.uniform(2, -1, 1), s.uniform(1, -1, 0.2)], 1) * 1e4
    s.background(d, 0.8, 0.6, bare=0.35)
    s.floating(boxes=12, balls=10, rods=7, rects=6, sheets=2, low=d * 1.1, high=0.97 * s.largest,
            size=0.2)


def build_layers(s: Scene) -> None:
    """Textured sheets close together at many depths, from facing to strongly slanted."""
    d = s.uniform(1, 0.03, 0.5) * s.largest
    s.light = torch.cat([s.uniform(2, -1, 1), s.uniform(1, -1, -0.2)], 1) * 1e4
    s.background(d, 0.9, 0.7, bare=0.25)
    n = 20
    centre, size, _ = s.float_at(n, s.log_uniform(n, 12, 0.26 * s.width), d * 1.1, 0.95
            * s.largest, power=1.2)
    steep = s.uniform(1) ** 0.5 * 1.25  # some items consist of facing sheets only
    turn = rotation(s.uniform(n, -1, 1) * steep, s.uniform(n, -1, 1) * steep,
            s.uniform(n, -math.pi, math.pi))
    half = s.point(size * s.uniform(n, 0.35, 1), size * s.uniform(n, 0.35, 1), size)
    s.add(RECT, centre, turn, half, s.material(n, mirror=0.06))
    s.floating(boxes=0, balls=3, rods=3, rects=0, sheets=4, low=d * 1.1, high=0.95 * s.largest,
            size=0.2)


BUILD = {"room": build_room, "street": build_street, "objects": build_objects,
        "layers": build_layers}


# ---- Ray casting ---------------------------------------------------------------------------------

class Rays:
    """Rays of both views and two samples a pixel. Every map has the shape (B, 4, H, W): left
    samples 0 and 1, right samples 2 and 3. A direction has z = 1, so the ray's parameter is Z."""

    def __init__(self, s: Scene, device, shift: Tensor):
        """`shift` (B): how many px lower the right view sees, a fault of its rectification."""
        self.focal = s.focal.to(device).view(-1, 1, 1, 1)
        offset = torch.tensor([-0.25, 0.25, -0.25, 0.25], device=device).view(1, 4, 1, 1)
        down = torch.tensor([0.0, 0.0, 1.0, 1.0], device=device).view(1, 4, 1,
                1) * shift.to(device).view(-1, 1, 1, 1)
        x = torch.arange(s.width, device=device) - (s.width - 1) / 2
        y = torch.arange(s.height, device=device) - (s.height - 1) / 2
        self.x = (x.view(1, 1, 1, -1) + offset) / self.focal  # (B, 4, 1, W)
        self.y = (y.view(1, 1, -1, 1) + offset + down) / self.focal  # (B, 4, H, 1)
        self.origin = torch.tensor([0.0, 0.0, 1.0, 1.0], device=device).view(1, 4, 1,
                1)  # x; y = z = 0


def intersect(shape: int, origin: Tensor, row: Tensor, column: Tensor, rays: Rays):
    """First intersection of all rays with one primitive per item, in its unit coordinates.

    origin (3, B, 4, 1, 1); direction = row (3, B, 4, 1, W) + column (3, B, 4, H, 1).
    Returns the ray parameter (NaN or any value without a hit), where it is a hit (None: where it
    is a positive number) and for rectangles the hit's x and y. Written for few passes over memory:
    those are the whole cost."""
    just_outside = 1.0002
    if shape in (RECT, SHEET, GLASS):
        t = -origin[2] / (row[2] + column[2])
        px = torch.addcmul(origin[0], t, row[0] + column[0])
        py = torch.addcmul(origin[1], t, row[1] + column[1])
        return t, torch.maximum(px.abs(), py.abs()) < 1, px, py
    # A ray can enter a slab |p| < 1 only through the plane on the camera's side.
    entry = torch.where(origin.abs() > 1, origin.sign() - origin, 0.0)
    if shape == BOX:
        directions = [row[i] + column[i] for i in range(3)]
        t = entry[0] / directions[0]
        t = torch.maximum(t, entry[1] / directions[1])
        t = torch.maximum(t, entry[2] / directions[2])
        outside = None
        for o, d in zip(origin, directions):
            p = torch.addcmul(o, t, d).abs_()
            outside = p if outside is None else torch.maximum(outside, p)
        return t, outside < just_outside, None, None
    # Quadrics: a t^2 + 2 b t + c = 0 for |o + t d| = 1, with x, y (rod) or x, y, z (ball). The
    # coefficients are polynomials in the pixel's coordinates, sums of row and column terms.
    axes = slice(0, 2 if shape == ROD else 3)
    o, r, c = origin[axes], row[axes], column[axes]
    minus_a = torch.addcmul(-(r * r).sum(0), rays.x, (r[..., :1] / rays.x[..., :1] * c).sum(0),
            value=-2) - (c * c).sum(0)
    b = (o * r).sum(0) + (o * c).sum(0)
    root = torch.addcmul(b * b, minus_a, (o * o).sum(0) - 1).sqrt_()
    t = (b + root).div_(minus_a)
    if shape == BALL:
        return t, None, None, None
    leave = b.sub_(root).div_(minus_a)
    dz = row[2] + column[2]
    t = torch.maximum(t, entry[2] / dz)
    hit = torch.addcmul(origin[2], t, dz).abs_() < just_outside
    return t, hit.logical_and_(t < leave), None, None


def render(s: Scene, stack: Tensor, device, shift: Tensor, plain: bool):
    """Casts all rays. Returns grey levels, depths Z and primitive numbers, (B, 4, H, W) each."""
    rays = Rays(s, device, shift)
    centre, turn, half, table = (torch.cat(parts, 1) for parts in zip(*s.tables))
    centre = (s.turn @ centre[..., None])[..., 0]
    to_local = (s.turn @ turn).transpose(-1, -2) / half[..., None]  # (B, N, 3, 3)
    base = -(to_local @ centre[..., None])[..., 0]  # the left camera in local coordinates
    leaf_level = torch.log2((centre[..., 2].abs() / s.focal / table[...,
            MATERIAL.index("texel")]).clamp(1, 30))
    light = (s.turn[:, 0] @ s.light[..., None])[..., 0].to(device).view(s.batch, 3, 1, 1, 1)
    reach = s.reach.to(device).view(-1, 1, 1, 1)
    number = len(s.shapes)
    columns = torch.cat([to_local.flatten(2), base, half, table,
                         torch.tensor(s.shapes).view(1, -1, 1).expand(s.batch, -1, 1)], -1).float()
    columns = columns.permute(2, 1, 0).contiguous().to(device)  # (P, N, B)
    leaf_level = leaf_level.to(device)

    m = columns[:9].view(3, 3, number, s.batch).permute(2, 0, 1, 3)  # N, row, column, B
    m = m[..., None, None, None]
    rows = m[:, :, 0] * rays.x
    lines = m[:, :, 1] * rays.y + m[:, :, 2]
    origins = columns[9:12].permute(1, 0, 2)[..., None, None, None] + m[:, :, 0] * rays.origin
    material = {name: columns[15 + i] for i, name in enumerate(MATERIAL)}

    nearest = s.focal.to(device).view(-1, 1, 1, 1) / (1.02 * s.largest)
    depth = torch.full((s.batch, 4, s.height, s.width), 1e6, device=device)
    which = torch.zeros(depth.shape, dtype=torch.uint8, device=device)
    pane = torch.zeros_like(depth)
    pane_number = 0
    for k, shape in enumerate(s.shapes):
        t, hit, px, py = intersect(shape, origins[k], rows[k], lines[k], rays)
        closer = (t < depth).logical_and_(t > nearest)
        if hit is not None:
            closer.logical_and_(hit)
        if shape == GLASS:
            pane, pane_number = closer, k
            continue
        if shape == SHEET:
            view = (s.batch, 1, 1, 1)
            texel = material["texel"][k].view(view)
            u = torch.addcmul(material["du"][k].view(view), px, columns[12, k].view(view) / texel)
            v = torch.addcmul(material["dv"][k].view(view), py, columns[13, k].view(view) / texel)
            # Far outside of the sheet coordinates lose their meaning, but nobody looks there.
            mask = sample_texture(stack, material["layer"][k].view(view),
                    leaf_level[:, k].view(view), u, v)
            edge = material["round"][k].view(view) * (px * px + py * py) ** 2
            closer &= mask + edge < material["threshold"][k].view(view)
        depth = torch.where(closer, t, depth)
        which.masked_fill_(closer, k)

    which = which.long()
    colour = shade(s, rays, stack, columns, which, depth, light, reach, plain)
    if not plain and pane_number:
        t, *_ = intersect(GLASS, origins[pane_number], rows[pane_number], lines[pane_number], rays)
        reflection = shade(s, rays, stack, columns, torch.full_like(which, pane_number),
                t.clamp(0, 1e5), light, reach, plain, pure=True)
        k = material["mirror"][pane_number].view(-1, 1, 1, 1)
        colour = torch.where(pane, colour + (reflection - colour) * k, colour)
    return colour, depth, which


def shade(s: Scene, rays: Rays, stack: Tensor, columns: Tensor, which: Tensor, depth: Tensor,
        light: Tensor,
          reach: Tensor, plain: bool, pure=False) -> Tensor:
    """Colours (B, 4, H, W) of the hits in grey levels; `pure`: of what they mirror alone."""
    batch = s.batch
    index = (which * batch + torch.arange(batch, device=which.device).view(-1, 1, 1, 1)).flatten()
    gathered = columns.flatten(1).index_select(1, index).view(-1, *which.shape)
    m, base, half = gathered[:9], gathered[9:12], gathered[12:15]
    values = dict(zip(MATERIAL, gathered[15:]))
    shape = gathered[-1]

    dx, dy = rays.x.expand_as(depth), rays.y.expand_as(depth)
    x, y = torch.addcmul(rays.origin, dx, depth), dy * depth
    p = [torch.addcmul(torch.addcmul(torch.addcmul(base[i], m[3 * i], x), m[3 * i + 1], y),
            m[3 * i + 2], depth) for i in range(3)]

    # Normals in local coordinates: of the box's face, the ball's point, the rod's side or cap.
    ax, ay, az = (q.abs() for q in p)
    on_x = (ax >= ay) & (ax >= az)
    on_y = ~on_x & (ay >= az)
    box, rod = shape == BOX, shape == ROD
    flat = (shape == RECT) | (shape == SHEET) | (shape == GLASS) | (rod & (az > 0.9995))
    nx = p[0].masked_fill(flat | (box & ~on_x), 0.0)
    ny = p[1].masked_fill(flat | (box & ~on_y), 0.0)
    nz = p[2].masked_fill((box & (on_x | on_y)) | rod, 0.0).masked_fill_(flat, 1.0)
    normal = [m[i] * nx + m[3 + i] * ny + m[6 + i] * nz for i in range(3)]
    length = (normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2).sqrt_() + 1e-12
    ray_length = (dx * dx + dy * dy + 1).sqrt_()
    facing = (normal[0] * dx + normal[1] * dy + normal[2]) / (length * ray_length)
    scale = -torch.sign(facing) / length
    normal = [q * scale for q in normal]
    facing = facing.abs_()

    to_light = [light[:, 0] - x, light[:, 1] - y, light[:, 2] - depth]
    distance = (to_light[0] ** 2 + to_light[1] ** 2 + to_light[2] ** 2).sqrt_()
    lit = ((normal[0] * to_light[0] + normal[1] * to_light[1] + normal[2] * to_light[2])
            / distance).clamp_(min=0)
    lit = lit / (1 + (distance / reach).clamp(max=50) ** 2 * (reach < 1e8))

    # Surface coordinates in units of length.
    q = [a * b for a, b in zip(p, half)]
    side = rod & ~flat
    turned = on_x & ~flat & ~rod
    u = torch.where(side, torch.atan2(p[1], p[0]) * half[0], torch.where(turned, q[1], q[0]))
    v = torch.where(side | ((on_x | on_y) & ~flat), q[2], q[1])

    def texture(layer, texel, contrast):
        footprint = depth / (rays.focal * texel) / facing.clamp(0.02).sqrt()  # texels a pixel
        level = torch.log2(footprint.clamp(1, 2 ** (LEVELS - 1.01)))
        value = sample_texture(stack, layer, level, u / texel + values["du"], v / texel
                + values["dv"])
        return contrast * value / (1 + (footprint / 24) ** 2)

    if not pure:
        ambient = 0.45
        own = values["grey"] + texture(values["layer"], values["texel"], values["contrast"]) \
            + texture(values["layer2"], values["texel2"], values["contrast2"])
        own = own.clamp_(2, 255) * (ambient + (1 - ambient) * 1.4 * lit)
        if plain:
            return own
    # Mirrored surroundings: a smooth texture over the direction, and the lamp.
    along = 2 * facing * ray_length
    r = [dx + along * normal[0], dy + along * normal[1], 1 + along * normal[2]]
    inverse = 1 / ray_length
    r = [c * inverse for c in r]
    fold = 110 / (1 + r[2].abs())
    steady = torch.ones(1, device=depth.device)
    surroundings = 125 + 60 * sample_texture(stack, steady * PATCHES[0], steady * 1.5, r[0] * fold,
            r[1] * fold) \
        + 25 * sample_texture(stack, steady * NOISE[7], steady * 2.0, r[0] * fold, r[1] * fold)
    shine = ((r[0] * to_light[0] + r[1] * to_light[1] + r[2] * to_light[2]) / distance).clamp_(0,
            1) ** 40
    surroundings = surroundings.clamp_(5, 255) + shine * 160
    if pure:
        return surroundings
    k = values["mirror"] * (0.5 + 0.5 * (1 - facing) ** 3)
    return own * (1 - k) + surroundings * k + values["gloss"] * shine


# ---- Cameras -------------------------------------------------------------------------------------

# Luminance quantisation of JPEG, Annex K.
JPEG_TABLE = (16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40,
        57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55,
        64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99)


def compress(image: Tensor, strength: Tensor) -> Tensor:
    """JPEG's loss: 8x8 DCT, quantisation by `strength` (N, 1, 1, 1) times the standard table."""
    n, _, height, width = image.shape
    k = torch.arange(8, device=image.device)
    norm = torch.where(k[:, None] == 0, 0.125, 0.25).sqrt()
    dct = norm * torch.cos((2 * k[None] + 1) * k[:, None] * (math.pi / 16))
    padded = F.pad(image, (0, -width % 8, 0, -height % 8), mode="replicate")
    blocks = padded.unflatten(3, (-1, 8)).unflatten(2, (-1, 8))[:, 0]
    blocks = blocks.transpose(2, 3)  # (N, rows, columns, 8, 8)
    step = (torch.tensor(JPEG_TABLE, device=image.device).view(1, 1, 1, 8, 8)
            * strength[..., None]).clamp(min=1)
    coefficients = dct @ (blocks - 128) @ dct.T
    blocks = dct.T @ (torch.round(coefficients / step) * step) @ dct + 128
    out = blocks.transpose(2, 3).reshape(n, 1, *padded.shape[2:])
    return out[..., :height, :width]


def expose(views: Tensor, s: Scene, generator: torch.Generator) -> Tensor:
    """Camera effects on (2B, 1, H, W), left views first: uint8. Parameters come from `s`."""
    device = views.device
    b, height, width = s.batch, s.height, s.width

    def both(left, right):  # (B, 1) each to (2B, 1, 1, 1)
        return torch.cat([left, right]).view(-1, 1, 1, 1).to(device)

    def pair(same, differ, share):
        """A common value of the pair, times or plus a difference of the right view for a share."""
        return both(same, same + torch.where(s.chance(1, share), differ, 0.0))

    # Exposure: a mean the camera would choose, with a step between the views in some pairs.
    mean = views.view(2, b, -1).mean((0, 2)).clamp(min=5)
    gain = (s.uniform(1, 60, 145).to(device).view(-1) / mean).clamp(0.4, 3).repeat(2).view(-1, 1,
            1, 1)
    step = torch.where(s.chance(1, 0.1), s.uniform(1, -0.45, 0.45), s.uniform(1, -0.1, 0.1))
    zero = torch.zeros(b, 1)
    views = views * gain * torch.exp(pair(zero, step, 0.6)) + pair(s.uniform(1, -5, 5),
            s.uniform(1, -7, 7), 0.6)
    gamma = torch.exp(pair(s.uniform(1, -0.25, 0.25), s.uniform(1, -0.08, 0.08), 0.6))
    # Highlights saturate, or a shoulder of the tone curve keeps them.
    slope = both(*[torch.where(s.chance(1, 0.7), 0.25, 1.0)] * 2)
    views = torch.where(views > 190, 190 + (views - 190) * slope, views)
    views = 255 * (views.clamp(0, 510) / 255) ** gamma
    y = (torch.arange(height, device=device) / height - 0.5).view(-1, 1)
    x = (torch.arange(width, device=device) / width - 0.5).view(1, -1)
    views = views * (1 - pair(s.uniform(1, 0, 0.25), s.uniform(1, 0, 0.3), 0.4) * (x * x + y * y))

    sigma = pair(torch.where(s.chance(1, 0.6), s.uniform(1, 0.2, 1.0), 0.2), s.uniform(1, 0, 0.8),
            0.2).clamp(0.05, 1.3)
    taps = torch.arange(-3, 4, device=device)
    weights = torch.exp(-0.5 * (taps / sigma) ** 2)
    weights = weights / weights.sum(-1, keepdim=True)
    for dim, pad in ((3, (3, 3, 0, 0)), (2, (0, 0, 3, 3))):
        padded = F.pad(views, pad, mode="replicate")
        views = sum(padded.narrow(dim, i, views.shape[dim]) * weights[..., i:i
                + 1] for i in range(7))

    noise = s.uniform(1) ** 2 * 6
    noise = pair(noise, noise * s.uniform(1, -0.5, 0.5), 0.3)
    views = views + noise * torch.randn(views.shape, generator=generator, device=device)
    quality = s.log_uniform(1, 0.1, 1.2)
    squeezed = torch.where(s.chance(1, 0.25), quality, 0.0)
    strength = both(squeezed, squeezed)
    views = views.round().clamp(0, 255)
    views = torch.where(strength > 0, compress(views, strength), views)
    return views.round().clamp(0, 255).byte()


# ---- Pairs ---------------------------------------------------------------------------------------

@torch.no_grad()
def make(batch: int, height: int, width: int, largest: float, generator: torch.Generator, device,
         kind: str | None = None, plain: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Makes a batch of rectified pairs of one kind of scene, a random one if `kind` is None.

    Returns left and right views, uint8; the left view's disparity in px, float32, up to about
    `largest`; and where both views see the surface, bool. All (B, 1, H, W). `plain` leaves
    reflections and camera effects out, to check the geometry."""
    device = torch.device(device)
    seed = int(torch.randint(2 ** 62, (), generator=generator, device=generator.device))
    small = torch.Generator().manual_seed(seed)  # the tables of a scene are small: made on the CPU
    large = torch.Generator(device).manual_seed(seed + 1)
    if kind is None:
        kind = list(KINDS)[int(torch.multinomial(torch.tensor(list(KINDS.values())), 1,
                generator=small))]
    s = Scene(batch, height, width, largest, small)
    BUILD[kind](s)
    shift = torch.where(s.chance(1, 0.5), s.uniform(1, -0.35, 0.35), 0.0)[:, 0] * (not plain)
    with torch.autocast(device.type, enabled=False):
        stack = texture_stack(large, device)
        colour, depth, which = render(s, stack, device, shift, plain)
        focal = s.focal.to(device).view(-1, 1, 1, 1)
        d = focal / depth

        # One value a pixel: the mean of the two samples of a surface, the nearer at an edge.
        def merged(first):
            a, b = d[:, first:first + 1], d[:, first + 1:first + 2]
            same = which[:, first:first + 1] == which[:, first + 1:first + 2]
            return torch.where(same & ((a - b).abs() < 1), (a + b) / 2, torch.maximum(a, b))

        disparity, right_disparity = merged(0), merged(2)
        column = torch.arange(width, device=device) - disparity
        inside = (column >= 0) & (column <= width - 1)
        left_of = column.floor().clamp(0, width - 1).long()
        pair = [left_of, (left_of + 1).clamp(max=width - 1)]  # neighbours of the right view's point
        apart = [right_disparity.gather(3, i) - disparity for i in pair]
        # Steep surfaces change by more than the tolerance between two pixels of the right view.
        surface = which[:, :1]
        steep = (apart[0] * apart[1] <= 0) & (which[:, 2:3].gather(3, pair[0]) == surface)
        steep &= which[:, 2:3].gather(3, pair[1]) == surface
        visible = inside & ((torch.minimum(apart[0].abs(), apart[1].abs()) < 1) | steep)

        if not plain:
            fog = torch.where(s.chance(1, 0.15), s.uniform(1, 0.2, 0.9), 0.0).to(device).view(-1,
                    1, 1, 1)
            white = s.uniform(1, 120, 230).to(device).view(-1, 1, 1, 1)
            clear = torch.exp(-fog * (depth * (largest * 0.1) / focal).clamp(max=20))
            colour = colour * clear + white * (1 - clear)
        views = torch.cat([colour[:, :2].mean(1, keepdim=True),
                colour[:, 2:].mean(1, keepdim=True)])
        views = views.round().clamp(0, 255).byte() if plain else expose(views, s, large)
    return views[:batch], views[batch:], disparity, visible


def write_sheet(path: str, seed: int) -> None:
    """Writes left, right, disparity and visibility of three examples of each kind."""
    import cv2

    generator = torch.Generator().manual_seed(seed)
    rows = []
    for kind in KINDS:
        for largest in (64, 96, 128):
            left, right, disparity, visible = (t[0, 0] for t in make(1, 192, 384, largest,
                    generator, "cpu", kind))
            grey = (disparity * (255 / largest)).clamp(0, 255).byte()
            rows.append(torch.cat([left, right, grey, visible.byte() * 255], 1))
    cv2.imwrite(path, torch.cat(rows).numpy())


if __name__ == "__main__":
    write_sheet(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
