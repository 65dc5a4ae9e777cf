#!/usr/bin/env bash
# Sets up, then runs all checks and tests. Needs no GPU, display or camera, and asks nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    echo "Usage: scripts/test.sh [ARGUMENTS OF cargo test]"
    exit 0
fi

. scripts/checks.sh
# Cameras in a virtual machine, where its tools and a recording lie beside the checkout.
shared=../shared
recording=$shared/data/euroc_v1_01/rectified
no_cameras=
if [[ ! -x $shared/camera-vm/run.sh || ! -e $recording/left.mp4 ]]; then
    no_cameras="$shared/camera-vm or $recording is not here"
elif [[ $EUID -ne 0 || ! -e /etc/debian_version ]]; then
    no_cameras="making the virtual machine needs root and Debian"
elif [[ $# -gt 0 ]]; then
    no_cameras="only some tests are run"
fi
wanted=(--tests)
if [[ -z $no_cameras ]]; then wanted+=(--cameras); fi
scripts/setup.sh "${wanted[@]}" </dev/null || exit 1
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
export PATH

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Graphics and sound libraries want this folder, and only for this user.
if [[ ! -d ${XDG_RUNTIME_DIR:-/nonexistent} || ! -w ${XDG_RUNTIME_DIR:-/nonexistent} ]]; then
    export XDG_RUNTIME_DIR=$scratch/runtime
    mkdir -m 700 "$XDG_RUNTIME_DIR"
fi
# The tests must not use the machine's own configuration and cache.
export XDG_CONFIG_HOME=$scratch/config XDG_CACHE_HOME=$scratch/cache
# CUDA's run-time compiler, if scripts/setup.sh could fetch it.
nvrtc=$(realpath -m "${CARGO_TARGET_DIR:-target}/nvrtc/nvidia/cu13/lib")
if [[ -d $nvrtc ]]; then
    export LD_LIBRARY_PATH=$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# Clippy compiles the crate itself, so that the lints and the tests share one build; `cargo clippy` would
# read all dependencies once more, without building them. Its arguments travel as cargo-clippy hands them on.
RUSTC_WORKSPACE_WRAPPER=$(command -v clippy-driver) || { echo "test: clippy is missing: rustup component add clippy" >&2; exit 1; }
export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__

# Incremental compilation does not pay for a single build.
if [[ -n ${CI:-} ]]; then export CARGO_INCREMENTAL=0; fi

# Runs all of Cargo's tests and keeps their output to count them. The output of failing tests is shown,
# and notes on skipped tests go into the summary.
tests() {
    if [[ " $* " != *" -- "* ]]; then set -- "$@" --; fi
    cargo test --locked --no-fail-fast "$@" --show-output 2>&1 | tee "$scratch/tests" |
        awk '/^successes:$/ { quiet = 1 } /^(test result:|failures:$)/ { quiet = 0 }
            !quiet { print; fflush() }'
}

check "formatting" cargo fmt --check
check "layers, self-test" python3 scripts/check_layering.py --self-test
check "layers" python3 scripts/check_layering.py
check "shell scripts" shellcheck scripts/*.sh .ci/run
check "clippy and build" cargo test --locked --no-run "$@"
check "tests" tests "$@"
if [[ ! -d $nvrtc ]]; then skip "kernels compile" "NVRTC could not be fetched"; fi

# Nothing is linked, so that this machine's own pkg-config files will do, and C (zstd) need not be compiled;
# scripts/arm64.sh builds and runs.
arm64=aarch64-unknown-linux-gnu
if [[ $# -gt 0 ]]; then
    skip "compiles for ARM64" "only some tests are run"
elif [[ ! -d $(rustc --print target-libdir --target $arm64) ]]; then
    skip "compiles for ARM64" "Rust's library for it could not be fetched"
else
    check "compiles for ARM64" env PKG_CONFIG_ALLOW_CROSS=1 CC_aarch64_unknown_linux_gnu=true \
        AR_aarch64_unknown_linux_gnu=true cargo check --locked --lib --target $arm64
fi

# The library alone, and the program without window and server.
few_crates() {
    local crates
    crates=$(cargo tree --locked -p stereod --no-default-features -e normal,build --prefix none | awk '{ print $1, $2 }' | sort -u | wc -l)
    echo "the library has $((crates - 1)) dependencies"
    [[ $crates -le 91 ]]
}
if [[ $# -gt 0 ]]; then
    skip "library alone, headless program" "only some tests are run"
else
    check "library has few dependencies" few_crates
    check "library alone" cargo test --locked -p stereod --no-default-features --features image --test library
    check "headless program, ROS 2" cargo test --locked -p stereod -p stereod-io --lib --no-default-features --features stereod/ros2,stereod/bags -- ros2::
    check "documentation" env RUSTDOCFLAGS="-Dwarnings -Arustdoc::private_intra_doc_links" cargo doc --locked --no-deps --lib -p stereod-core -p stereod --no-default-features
fi

# The Python package, from a new virtual environment.
if [[ $# -gt 0 ]]; then
    skip "Python package" "only some tests are run"
elif [[ ! -x ${CARGO_TARGET_DIR:-target}/python-tools/bin/maturin ]]; then
    skip "Python package" "maturin could not be fetched"
else
    check "Python package" scripts/wheel.sh --test "${CARGO_TARGET_DIR:-target}/debug/stereod"
fi

if [[ $# -gt 0 ]]; then
    skip "recordings of other programs" "only some tests are run"
else
    check "recordings of other programs" scripts/recordings.sh
fi

if [[ $# -gt 0 ]]; then
    skip "live page in Chromium" "only some tests are run"
else
    check "live page in Chromium" scripts/browser.sh
fi

# The machine's image is made once. If the emulation was too slow the first time, a second attempt
# decides.
image=$(realpath -m "${CARGO_TARGET_DIR:-target}/camera-vm")
simulated_cameras() {
    export IMG=$image BIN=${CARGO_TARGET_DIR:-target}/debug/stereod
    "$shared/camera-vm/build.sh" "$image" || return 1
    twice scripts/camera_vm.sh "$shared/camera-vm" "$recording"/{left,right,side_by_side}.mp4 list formats swap &&
        CYCLES=2 twice scripts/faults_vm.sh "$shared/camera-vm" "$recording"/{left,right}.mp4 replug
}
twice() { "$@" || { echo "once more:" && "$@"; }; }
if [[ -n $no_cameras ]]; then
    skip "simulated cameras" "$no_cameras"
else
    check "simulated cameras" simulated_cameras
fi

# Adds up Cargo's closing lines: "test result: ok. 12 passed; 0 failed; 0 ignored; ...".
count() {
    sed -n "s/^test result: .* \([0-9]*\) $1.*/\1/p" "$scratch/tests" | awk '{ n += $1 } END { print n + 0 }'
}

summarise
grep -ih '^skipped: ' "$scratch/tests" | sort -u
echo "tests: $(count passed) passed, $(count failed) failed, $(count ignored) ignored"
conclude
