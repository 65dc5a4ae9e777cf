"""Pairs for the tests: a synthetic scene, and real pictures where they lie beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TEDDY = ROOT.parent / "shared/data/middlebury_v2/teddy"


@pytest.fixture
def scene():
    """A textured wall at 9 px behind a box at 20 px, and the true disparity."""
    rng = np.random.default_rng(7)

    def texture(height, width):
        coarse = rng.integers(0, 256, (height // 2, width // 2), dtype=np.uint8)
        return np.kron(coarse, np.ones((2, 2), np.uint8))

    wall, box = texture(120, 240), texture(40, 60)
    right, left, truth = wall[:, 20:220].copy(), wall[:, 11:211].copy(), np.full((120, 200), 9)
    right[40:80, 60:120] = left[40:80, 80:140] = box
    truth[40:80, 80:140] = 20
    return left, right, truth


@pytest.fixture
def teddy():
    cv2 = pytest.importorskip("cv2")
    if not TEDDY.exists():
        pytest.skip(f"{TEDDY} is not here")
    return tuple(cv2.imread(str(TEDDY / name)) for name in ("imL.png", "imR.png"))
