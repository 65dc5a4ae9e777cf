#!/usr/bin/env python3
"""Prints the instructions of the kernels' inner loops, per kernel and chip, in Markdown. Needs no GPU.

usage: scripts/instructions.py [SM...]        default: 75 80 86 89 90 100 120

Compiles the kernels of the defaults at 1280x720 with 128 disparities, as the engine does for 8 multiprocessors, and
disassembles them with nvdisasm, which comes with CUDA or in the PyPI package nvidia-cuda-nvdisasm. A loop that holds
another one is left out. Code outside the straight path of a loop counts, too, so the figures are upper limits.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHORTEST = 40  # instructions of a loop to be listed


def compile_for(sm, folder):
    nvrtc = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "nvrtc/nvidia/cu13/lib"
    path = os.pathsep.join(filter(None, [str(nvrtc), os.environ.get("LD_LIBRARY_PATH")]))
    test = "cargo test --locked -p stereod-core --test kernels -- --ignored code_of_the_kernels"
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "STEREOD_CODE": folder, "SM": sm}
    subprocess.run(test.split(), cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def kernels(cubin):
    """Yields each kernel's name, its instructions, and the indices of its labels."""
    text = subprocess.run(["nvdisasm", "-c", cubin], capture_output=True, text=True, check=True).stdout
    for part in re.split(r"^\s*\.section\s+\.text\.", text, flags=re.M)[1:]:
        instructions, labels = [], {}
        for line in part.splitlines():
            if label := re.match(r"(\.L_x_\d+):", line):
                labels[label[1]] = len(instructions)
            elif found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(.*?);", line):
                instructions.append(found[1])
        yield re.split(r"[,\s]", part, maxsplit=1)[0], instructions, labels


def innermost_loops(instructions, labels):
    loops = []
    for end, instruction in enumerate(instructions):
        target = re.match(r"BRA.*(\.L_x_\d+)", instruction)
        if target and labels.get(target[1], end + 1) <= end:
            loops.append((labels[target[1]], end + 1))
    return sorted({a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)})


def main():
    if not all(sm.isdigit() for sm in sys.argv[1:]):
        sys.exit(__doc__)
    for sm in sys.argv[1:] or "75 80 86 89 90 100 120".split():
        print(f"\n## sm_{sm}\n\n| kernel | instructions of a loop | most frequent |\n| --- | ---: | --- |")
        with tempfile.TemporaryDirectory() as folder:
            compile_for(sm, folder)
            for cubin in sorted(pathlib.Path(folder).glob("*.cubin")):
                for name, instructions, labels in kernels(cubin):
                    for first, end in innermost_loops(instructions, labels):
                        loop = instructions[first:end]
                        counts = collections.Counter(re.split(r"[.\s]", text, maxsplit=1)[0] for text in loop)
                        if len(loop) >= SHORTEST:
                            most = ", ".join(f"{count} {what}" for what, count in counts.most_common(10))
                            print(f"| {cubin.stem}: {name} | {len(loop)} | {most} |")


main()
