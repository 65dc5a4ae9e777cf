#!/usr/bin/env bash
# Builds the wheels of the Python package into target/wheels, or builds and tests one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="Usage: scripts/wheel.sh [TARGET... | --test [PROGRAM]]
  Builds wheels (Python 3.10 and newer) for these of Rust's targets, by default for this machine's:
  {x86_64,aarch64}-unknown-linux-gnu run from glibc 2.28 on, those that end with musl
  from musl 1.2 on (such a wheel of stereod has not been tried yet). x86_64-pc-windows-gnu needs MinGW.
  --test [PROGRAM]  Builds one for this machine without optimisation, installs it into a new virtual
                    environment and tests it there. PROGRAM is a stereod whose maps must be the same.
                    WHEEL_FEATURES are Cargo's features; scripts/test.sh names those with which its crates are built."
case ${1:-} in
    -h | --help) echo "$usage" && exit 0 ;;
    --test | *-linux-* | *-windows-gnu | "") ;;
    *) echo "$usage" >&2 && exit 2 ;;
esac

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target/python-tools
# Installs the tools that make wheels, once; the wheel itself gets an environment of its own below.
install_tools() {
    if [[ ! -x $tools/bin/python ]]; then "$(scripts/python.sh venv ensurepip)" -m venv "$tools"; fi
    "$tools/bin/pip" install --quiet --disable-pip-version-check "$@"
}

if [[ ${1:-} != --test ]]; then
    if [[ $# -eq 0 ]]; then set -- "$(rustc -vV | sed -n 's/^host: //p')"; fi
    for triple in "$@"; do
        [[ -d $(rustc --print target-libdir --target "$triple") ]] || rustup target add "$triple"
    done
    install_tools 'maturin>=1.9,<2' ziglang wheel
    mkdir -p target/licences
    export PATH=$tools/bin:$PATH # maturin finds zig by its Python
    version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    for triple in "$@"; do
        case $triple in
            *-musl) system=(--zig --compatibility musllinux_1_2) ;;
            *-linux-*) system=(--zig --compatibility manylinux_2_28) ;;
            *) system=(--interpreter python3.13) ;;
        esac
        "$(scripts/python.sh json)" scripts/licences.py --package stereod-python --target "$triple" >target/licences/crates.txt
        "$tools/bin/maturin" build --release "${system[@]}" --target "$triple" --out "$made"
    done
    # maturin writes this folder into its bill of materials.
    mkdir -p "$target/wheels"
    for wheel in "$made"/*.whl; do
        "$tools/bin/wheel" unpack --dest "$made" "$wheel"
        sed -i "s|$PWD|/usr/src/stereod|g" "$made"/stereod-*/*.dist-info/sboms/*.json
        # The page of the package has no other documents beside it; docs.rs shows those of this version.
        sed -i "s#](\([a-z0-9_]*\.md\)#](https://docs.rs/crate/stereod/$version/source/docs/\1#g" "$made"/stereod-*/*.dist-info/METADATA
        "$tools/bin/wheel" pack --dest-dir "$target/wheels" "$made"/stereod-*/
        rm -rf "$made"/stereod-*/
    done
    ls -l "$target/wheels"
    exit
fi

install_tools 'maturin>=1.9,<2'
rm -rf "$target/wheels-test"
"$tools/bin/maturin" build --profile dev ${WHEEL_FEATURES:+--features "$WHEEL_FEATURES"} --out "$target/wheels-test"
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
"$(scripts/python.sh venv ensurepip)" -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check \
    "$target"/wheels-test/*.whl pytest mypy onnx onnxruntime opencv-python-headless OpenEXR tifffile matplotlib pillow
if [[ -n ${2:-} ]]; then STEREOD_TEST_PROGRAM=$(realpath "$2"); export STEREOD_TEST_PROGRAM; fi
"$environment/bin/python" -m pytest -q -rs -p no:cacheprovider tests/python
# Types: the package's own, its stubs against the compiled part, and a program that uses it.
"$environment/bin/mypy" --strict --cache-dir=/dev/null src/python/stereod tests/python/typed.py
cd "$environment" && bin/python -m mypy.stubtest stereod._native
