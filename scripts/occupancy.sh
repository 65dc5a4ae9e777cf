#!/usr/bin/env bash
# Prints the multiprocessor resources of the sweeps' kernels, chip by chip, in Markdown. Needs no GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -gt 0 ]]; then
    cat <<'END'
Usage: scripts/occupancy.sh

Compiles the sweeps as the engine does for each of some chips and usual jobs, which takes some minutes, and prints for
each launch: how the engine divides the picture (exchange: all strips at once; tasks; each alone: 4 paths, strips that need
nothing of each other; beside N: the horizontal paths beside N blocks of the sweeps to the middle), columns of a strip and
rows of a task or between exchanges, threads of a block, registers and bytes in local memory of a thread, shared memory of
a block, blocks that a multiprocessor could hold and what there is no more of then, blocks of the launch a multiprocessor,
and warps that are there at once of how many there could be.
END
    exit 0
fi

# CUDA's run-time compiler where scripts/setup.sh --tests has put it; else the machine's.
nvrtc=$(realpath -m "${CARGO_TARGET_DIR:-target}/nvrtc/nvidia/cu13/lib")
if [[ -d $nvrtc ]]; then
    export LD_LIBRARY_PATH=$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
# Between Cargo's and the tests' own words.
cargo test --locked -p stereod-core --test kernels -- --ignored --nocapture occupancy_of_the_sweeps | sed -n '/^NVRTC/,/^test /{/^test /!p}'
