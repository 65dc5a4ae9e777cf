#!/usr/bin/env python3
"""Learns the numbers of src/matching/confidence/model.rs and judges them on scenes not learnt from.

    stereod evaluate DATA/... --learn LEARN
    scripts/learn_confidence.py LEARN [--clip NAME]... [--write src/matching/confidence/model.rs]

`stereod evaluate --learn` writes a file for each pair: for each known pixel with truth its five levels
(src/matching/confidence.rs), and whether it is off by more than 1 px. Boosted trees (LightGBM) of at most
two neighbouring levels each are summed into tables, in 1/16 of the log-odds; a last table turns the sum into
a probability, as the pixels of scenes not learnt from have it. Every scene has the same weight. The pairs
whose names begin with the name of a --clip are one scene. Needs numpy, lightgbm and scikit-learn.
"""
import argparse
import collections
import pathlib
import sys

import lightgbm
import numpy as np
from sklearn.isotonic import IsotonicRegression

LEVELS, SIZE, UNIT = 5, 16, 16
PAIRS = [[a, (a + 1) % LEVELS] for a in range(LEVELS)]
TREES, PIXELS = 80, 20000
# More peak is never worse, and more unknown pixels are never better.
MONOTONE = [-1, -1, 1, 0, 0]


def read(folder, clips):
    """Returns levels, whether the pixel is wrong, the number of its scene, and the scenes' names."""
    random, scenes = np.random.default_rng(0), collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).glob("*.levels")):
        pixels = np.fromfile(path, np.uint8).reshape(-1, LEVELS + 1)
        scenes[next((clip for clip in clips if path.name.startswith(clip)), path.stem)].append(pixels)
    if len(scenes) < 2:
        sys.exit(f"{folder} has {len(scenes)} scenes; 2 are needed: write it with stereod evaluate --learn")
    chosen = []
    for parts in scenes.values():
        pixels = np.concatenate(parts)
        chosen.append(random.choice(pixels, min(PIXELS, len(pixels)), replace=False))
    scene = np.repeat(np.arange(len(chosen)), [len(part) for part in chosen])
    pixels = np.concatenate(chosen)
    return pixels[:, :LEVELS], pixels[:, LEVELS] > 0, scene, list(scenes)


def tables_of(levels, wrong, scene):
    """Learns the tables [pair][first level * SIZE + second level], in 1/UNIT of the log-odds of being right."""
    weight = 1 / np.bincount(scene)[scene]
    parameters = dict(objective="binary", num_leaves=8, learning_rate=0.15, min_data_in_leaf=300, verbose=-1,
                      num_threads=1, seed=1, deterministic=True, monotone_constraints=MONOTONE,
                      interaction_constraints=PAIRS, max_bin=SIZE, boost_from_average=True)
    data = lightgbm.Dataset(levels.astype(float), wrong, weight=weight * len(weight) / weight.sum())
    trees = lightgbm.train(parameters, data, TREES).dump_model()["tree_info"]
    tables = np.zeros((LEVELS, SIZE, SIZE))
    for tree in trees:
        for leaf, within in leaves(tree["tree_structure"], np.ones((LEVELS, SIZE), bool)):
            used = {level for level in range(LEVELS) if not within[level].all()}
            pair = next(k for k, pair in enumerate(PAIRS) if used <= set(pair))
            first, second = (within[level] for level in PAIRS[pair])
            tables[pair] -= leaf * np.outer(first, second)
    return np.clip(np.rint(UNIT * tables), -128, 127).astype(int).reshape(LEVELS, -1)


def leaves(node, within):
    """Yields the value of each leaf, and which numbers of each level lead to it."""
    if "split_feature" not in node:
        yield node["leaf_value"], within
        return
    level, is_left = node["split_feature"], np.arange(SIZE) <= node["threshold"]
    for child, side in (("left_child", is_left), ("right_child", ~is_left)):
        narrower = within.copy()
        narrower[level] &= side
        yield from leaves(node[child], narrower)


def places(tables, levels):
    """Places in the table of probabilities."""
    score = sum(tables[k][levels[:, a].astype(int) * SIZE + levels[:, b]] for k, (a, b) in enumerate(PAIRS))
    return np.clip(score + 128, 0, 255)


def confidences_of(place, wrong, scene):
    """Table of the confidence by place: the share of right pixels, never falling, from 2 to 255."""
    weight = 1 / np.bincount(scene)[scene]
    fit = IsotonicRegression(out_of_bounds="clip").fit(place, ~wrong, sample_weight=weight)
    return np.clip(np.rint(255 * fit.predict(np.arange(256))), 2, 255).astype(int)


def renumbered(scene):
    """Returns numbers of scenes without gaps."""
    return np.unique(scene, return_inverse=True)[1]


def area(order, wrong):
    """Area under the sparsification curve, in percent."""
    _, inverse, count = np.unique(-order, return_inverse=True, return_counts=True)
    share = (np.bincount(inverse, wrong) / count)[inverse]
    bad = np.cumsum(share[np.argsort(-order, kind="stable")])
    return 100 * np.mean(bad / np.arange(1, len(bad) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="folder that stereod evaluate --learn has written")
    parser.add_argument("--clip", action="append", default=[], metavar="NAME")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    levels, wrong, scene, names = read(options.folder, options.clip)

    # Each scene is judged by what the others teach.
    place, confidence = np.zeros(len(wrong), int), np.zeros(len(wrong), int)
    for own in range(len(names)):
        of, others = scene == own, scene != own
        place[of] = places(tables_of(levels[others], wrong[others], renumbered(scene[others])), levels[of])
    for own in range(len(names)):
        of, others = scene == own, scene != own
        confidence[of] = confidences_of(place[others], wrong[others], renumbered(scene[others]))[place[of]]
    weight = 1 / np.bincount(scene)[scene] / len(names)
    print("scenes not learnt from: confidence and share of right pixels in percent (part of all pixels)")
    for tenth in range(10):
        of = confidence * 10 // 256 == tenth
        if of.any():
            mean = lambda what: 100 * np.average(what[of], weights=weight[of])
            print(f"  {mean(confidence / 255):5.1f} {mean(~wrong):5.1f} ({100 * weight[of].sum():.2f})")
    areas = [[area(order[scene == s], wrong[scene == s]) for order in (levels[:, 0], confidence, ~wrong * 1)]
             for s in range(len(names))]
    for name, row in zip(names, areas):
        print(f"  {name:50} " + " ".join(f"{figure:6.2f}" for figure in row))
    print("area by the mean peak, by the confidence, best:", np.mean(areas, 0).round(3))

    if options.write:
        rows = lambda numbers: "\n".join("    " + ", ".join(map(str, numbers[i:i + SIZE])) + ","
                                         for i in range(0, len(numbers), SIZE))
        tables = "\n".join(rows(list(table)) for table in tables_of(levels, wrong, scene))
        probabilities = rows(list(confidences_of(place, wrong, scene)))
        pathlib.Path(options.write).write_text(
            "//! The numbers of the confidence, written by `scripts/learn_confidence.py`.\n\n"
            "/// For each pair of neighbouring levels, 1/16 of the log-odds that the pixel is right: by the\n/// number of the pair, the first level, the second one.\n"
            "#[rustfmt::skip]\n"
            f"pub const TABLES: [i8; {LEVELS * SIZE * SIZE}] = [\n{tables}\n];\n\n"
            "/// Confidence by the sum of the tables, from -128 on.\n"
            f"#[rustfmt::skip]\npub const CONFIDENCES: [u8; 256] = [\n{probabilities}\n];\n")


if __name__ == "__main__":
    main()
