#!/usr/bin/env python3
"""Counts the instructions of the CPU engine per pair on ARM64, stage by stage, in Markdown.

An emulator cannot measure time, but it can count instructions. QEMU's plugin arm64_count.c does so, block by block;
the source lines of a block give its stage. Needs the files that scripts/arm64.sh builds, and Debian's packages
qemu-user (the static QEMU has no plugins) and, with --mca, llvm-19: its processor model then gives the instructions
per clock of the hottest code of a stage.

    scripts/arm64_count.py
    scripts/arm64_count.py --mca neoverse-n1 --size 1280x720 --disparities 128 -- --cost ad --ad-window 1
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parent
# Stage of a line: the first of these files that it was compiled from or inlined into.
STAGES = [
    ("winner", ["winner.rs"]),
    ("paths to the left", ["cpu/leftwards.rs"]),
    ("all other paths", ["cpu/vertical.rs"]),
    ("costs", ["cpu/band_costs.rs", "cpu/window_sums.rs", "cpu/support.rs", "cpu/prepare.rs", "cpu/features.rs",
               "cpu/mirrored_rows.rs", "cpu/texture.rs", "cpu/noise.rs", "cpu/level.rs", "cpu/cost.rs", "cpu/steps.rs"]),
    ("filters", ["cpu/filter/"]),
]
# Blocks below this fraction of the most frequent one of their stage are no inner loops.
HOT = 0.7


def count(program, root, plugin, arguments, folder):
    """Returns the execution count of each address of the program."""
    counted = folder / "counted"
    command = ["qemu-aarch64", "-L", root, "-plugin", f"{plugin},to={counted}", program, *arguments]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    lines = counted.read_text().splitlines()
    start = int(lines[0], 16)
    runs = collections.Counter()
    for line in lines[1:]:
        address, length, times = line.split()
        address = int(address, 16) - start
        # Addresses far from the program belong to a library.
        if int(times) > 0 and 0 <= address < 1 << 28:
            for i in range(int(length)):
                runs[address + 4 * i] += int(times)
    return runs


def stages(program, addresses):
    """Returns the stage of each address, None if it belongs to none."""
    asked = "".join(f"{address:#x}\n" for address in addresses)
    lines = subprocess.run(["aarch64-linux-gnu-addr2line", "-a", "-i", "-e", program], input=asked, text=True,
                           capture_output=True, check=True).stdout.splitlines()
    found, address = {}, None
    for line in lines:
        if line.startswith("0x"):
            address = int(line, 16)
            found[address] = ""
        else:
            found[address] += line + "\n"
    return {address: next((stage for stage, files in STAGES if any(file in text for file in files)), None)
            for address, text in found.items()}


def cycles(program, cpu, runs):
    """Returns the inner loops' instructions per clock in a processor model."""
    most = max(runs.values())
    hot = sorted(address for address, times in runs.items() if times > HOT * most)
    first, last = hot[0], hot[-1] + 4
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", f"--start-address={first:#x}",
                           f"--stop-address={last:#x}", program], capture_output=True, text=True, check=True).stdout
    hot, code = set(hot), []
    for line in text.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if match and int(match[1], 16) in hot:
            # Without names and comments; the target of a jump does not matter.
            text = re.sub(r"\s*(<.*>|//.*)", "", match[2])
            code.append(re.sub(r"^((b|bl|cbn?z|tbn?z|adrp?)\b.*?\s)[0-9a-f]+$", r"\1target", text))
    # These processors decode four instructions per clock; the models ignore this limit.
    report = subprocess.run(["llvm-mca-19", "-mtriple=aarch64", f"-mcpu={cpu}", "-dispatch=4", "-iterations=100"],
                            input="\n".join(code), capture_output=True, text=True)
    rate = re.search(r"^IPC:\s+([0-9.]+)", report.stdout, re.M)
    if not rate:
        raise SystemExit(f"llvm-mca: {report.stderr[:500]}")
    return len(code), float(rate[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = SCRIPTS.parent / "target"
    parser.add_argument("--stereod", default=target / "aarch64-unknown-linux-gnu/release/stereod")
    parser.add_argument("--root", default=target / "arm64/root")
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--disparities", type=int, default=64)
    parser.add_argument("--simd", nargs="+", default=["neon", "portable"])
    parser.add_argument("--mca", metavar="CPU", help="the processor whose model llvm-mca takes")
    parser.add_argument("flags", nargs="*", help="more flags of stereod bench, behind --")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    cells = width * height * options.disparities

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        plugin = folder / "count.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", plugin, SCRIPTS / "arm64_count.c"], check=True)
        program = str(pathlib.Path(options.stereod).resolve())
        for simd in options.simd:
            bench = ["bench", "--engine", "cpu", "--threads", "1", "--size", options.size, "--disparities",
                     str(options.disparities), "--set", f"engine.simd={simd}", *options.flags, "--repeat"]
            # Two pairs more, and nothing else.
            runs = count(program, options.root, plugin, [*bench, "3"], folder)
            runs.subtract(count(program, options.root, plugin, [*bench, "1"], folder))
            runs = {address: times / 2 for address, times in runs.items() if times > 0}
            of = stages(program, runs)
            print(f"\n{simd}, {options.size} D{options.disparities} {' '.join(options.flags)}\n")
            print("| stage | million instructions | a cell | inner loops | instructions a clock |")
            print("| --- | ---: | ---: | ---: | ---: |")
            for stage, _ in STAGES:
                own = {address: times for address, times in runs.items() if of.get(address) == stage}
                total = sum(own.values())
                if not total:
                    continue
                length, rate = cycles(program, options.mca, own) if options.mca else ("", "")
                print(f"| {stage} | {total / 1e6:.0f} | {total / cells:.2f} | {length} | {rate} |", flush=True)
            rest = sum(times for address, times in runs.items() if of.get(address) is None)
            print(f"| everything else | {rest / 1e6:.0f} | {rest / cells:.2f} | | |", flush=True)


if __name__ == "__main__":
    main()
