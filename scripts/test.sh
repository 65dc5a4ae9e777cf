#!/usr/bin/env bash
# Sets up, then runs all checks and tests. Needs no GPU, display or camera, and asks nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
    cat <<'END'
Usage: scripts/test.sh [--part PART]... [ARGUMENTS OF cargo test]

Runs everything, or some parts of it:
  lint      formatting, layers, limits, shell scripts, fewer features, ARM64, documents
  core      tests of the matcher and of calibrations, parity, kernels for all architectures
  program   all other Rust tests
  others    recordings of other programs, the Python package, the live page in Chromium
  cameras   simulated cameras
END
}

all=(lint core program others cameras)
parts=()
while [[ ${1:-} == --part || ${1:-} == -h || ${1:-} == --help ]]; do
    case $1 in
        --part)
            if [[ " ${all[*]} " != *" ${2:-} "* ]]; then usage >&2; exit 2; fi
            parts+=("$2")
            shift 2
            ;;
        *) usage; exit 0 ;;
    esac
done
if [[ ${#parts[@]} -eq 0 ]]; then parts=("${all[@]}"); fi
wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; } # PART

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
scripts/setup.sh --tests </dev/null || exit 1
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
export PATH

scratch=$(mktemp -d)
trap 'end_beside; rm -rf "$scratch"' EXIT
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

# Many tests wait for a program that waits for another; none follows the clock, so more of them than processors run at once.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}

# Incremental compilation does not pay for a single build.
if [[ -n ${CI:-} ]]; then export CARGO_INCREMENTAL=0; fi

# All crates and features in one build. The Python package is in it for the features of its dependencies alone, so that
# scripts/wheel.sh finds the library compiled (its own feature `program` does the same the other way round).
everything=(--workspace --features "stereod/ros2,stereod/image")
case " $* " in *" -p "* | *" --package "* | *" --features "*) everything=() ;; esac

# Runs all of Cargo's tests and keeps their output to count them. The output of failing tests is shown,
# and notes on skipped tests go into the summary.
tests() {
    STEREOD_TEST_PYTHON=$(realpath -ms "${CARGO_TARGET_DIR:-target}/browser-tools/bin/python")
    export STEREOD_TEST_PYTHON
    if [[ " $* " != *" -- "* ]]; then set -- "$@" --; fi
    cargo test --locked --no-fail-fast "${everything[@]}" "$@" --show-output 2>&1 | tee "$scratch/tests" |
        awk '/^successes:$/ { quiet = 1 } /^(test result:|failures:$)/ { quiet = 0 }
            !quiet { print; fflush() }'
}

# The library has few dependencies, and the program compiles for ARM64, without window, server and recordings of ROS,
# and as the library alone. Nothing is linked, so that this machine's own pkg-config files will do, and C (zstd) need
# not be compiled; scripts/arm64.sh builds and runs.
arm64=aarch64-unknown-linux-gnu
compiles() {
    local crates features check=(cargo check --locked -p stereod --lib --bins)
    crates=$(cargo tree --locked -p stereod --no-default-features -e normal,build --prefix none | awk '{ print $1, $2 }' | sort -u | wc -l)
    echo "the library has $((crates - 1)) dependencies"
    if [[ $crates -gt 93 ]]; then return 1; fi
    if [[ -d $(rustc --print target-libdir --target $arm64) ]]; then
        check=(env PKG_CONFIG_ALLOW_CROSS=1 CC_aarch64_unknown_linux_gnu=true AR_aarch64_unknown_linux_gnu=true
            "${check[@]}" "--target=$arm64")
    else
        echo "skipped: Rust's library for ARM64 could not be fetched, so the code is compiled for this machine"
    fi
    for features in default cli image; do
        echo "with the features $features:"
        "${check[@]}" --no-default-features --features "$features" || return 1
    done
    RUSTDOCFLAGS="-Dwarnings -Arustdoc::private_intra_doc_links" \
        cargo doc --locked --no-deps --lib -p stereod-core -p stereod-calibration -p stereod --no-default-features &&
        python3 scripts/public_items.py
}

# Checks without a clock run beside the tests. They begin first, because Cargo builds one thing at a time.
without_clocks() {
    until [[ -e $scratch/tests.end ]] || grep -qs '^     Running' "$scratch/tests"; do sleep 1; done
    "$@"
}
tests_to_the_end() {
    local status=0
    tests "$@" || status=$?
    : >"$scratch/tests.end"
    return $status
}

# The machine's image is made once. It has OpenCV from PyPI as the other tests do; Debian's has a hundred packages below it.
image=$(realpath -m "${CARGO_TARGET_DIR:-target}/camera-vm")
# If the emulation was too slow the first time, a second attempt decides.
simulated_cameras() {
    export IMG=$image BIN=${CARGO_TARGET_DIR:-target}/debug/stereod
    scripts/python.sh cv2 numpy >/dev/null 2>&1 || scripts/setup.sh --cameras || return 1
    twice scripts/camera_vm.sh "$shared/camera-vm" "$recording"/{left,right,side_by_side}.mp4 list formats swap &&
        CYCLES=2 twice scripts/faults_vm.sh "$shared/camera-vm" "$recording"/{left,right}.mp4 replug
}
twice() { "$@" || { echo "once more:" && "$@"; }; }

# Packages of Python and the image are fetched and made while Cargo builds.
if [[ $# -eq 0 ]]; then
    # Without them the checks that need them skip, too.
    beside "tools of the tests" sh -c "scripts/test_tools.sh || exit 77"
    if wanted cameras && [[ -z $no_cameras ]]; then
        beside "image of the cameras' machine" "$shared/camera-vm/build.sh" "$image"
    fi
fi
if wanted lint; then
    check "formatting" cargo fmt --check
    check "layers, self-test" python3 scripts/check_layering.py --self-test
    check "layers" python3 scripts/check_layering.py
    check "limits, self-test" python3 scripts/ratchet.py --self-test
    check "limits" python3 scripts/ratchet.py
    check "shell scripts" shellcheck scripts/*.sh .ci/run
fi
matcher=(-p stereod-core -p stereod-calibration)
case "$(wanted core && echo core) $(wanted program && echo program)" in
    "core program") ;;
    "core ") everything=("${matcher[@]}" --features "stereod-core/wgpu stereod-core/image stereod-calibration/boards") ;;
    *) everything+=("${matcher[@]/#-p/--exclude}") ;;
esac
if wanted core || wanted program; then
    check "clippy and build" cargo test --locked --no-run "${everything[@]}" "$@"
elif wanted others || wanted cameras; then
    check "clippy and build" cargo build --locked "${everything[@]}"
fi
await
if [[ $# -gt 0 ]]; then
    skip "other builds, programs and cameras" "only some tests are run"
    check "tests" tests "$@"
else
    if wanted lint; then beside "fewer features, ARM64, documents" without_clocks compiles; fi
    # In a new virtual environment.
    if wanted others && [[ -x ${CARGO_TARGET_DIR:-target}/python-tools/bin/maturin ]]; then
        beside "Python package" without_clocks env WHEEL_FEATURES=program,stereod/ros2,stereod/image \
            scripts/wheel.sh --test "${CARGO_TARGET_DIR:-target}/debug/stereod"
    elif wanted others; then
        skip "Python package" "maturin could not be fetched"
    fi
    if wanted core || wanted program; then check "tests" tests_to_the_end; else : >"$scratch/tests.end"; fi
    await
    if wanted others; then
        beside "recordings of other programs" scripts/recordings.sh
        check "live page in Chromium" scripts/browser.sh
        await
    fi
fi
if wanted core && [[ ! -d $nvrtc ]]; then skip "kernels compile" "NVRTC could not be fetched"; fi
if wanted cameras && [[ -n $no_cameras ]]; then
    skip "simulated cameras" "$no_cameras"
elif wanted cameras; then
    check "simulated cameras" simulated_cameras
fi

# Adds up Cargo's closing lines: "test result: ok. 12 passed; 0 failed; 0 ignored; ...".
count() {
    sed -n "s/^test result: .* \([0-9]*\) $1.*/\1/p" "$scratch/tests" | awk '{ n += $1 } END { print n + 0 }'
}

summarise
if wanted core || wanted program; then
    grep -ih '^skipped: ' "$scratch/tests" | sort -u
    echo "tests: $(count passed) passed, $(count failed) failed, $(count ignored) ignored"
fi
conclude
