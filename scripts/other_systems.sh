#!/usr/bin/env bash
# Checks what of stereod the compiler takes for macOS and Windows, and runs tests for Windows under Wine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/other_systems.sh [--wine]

Compiles without linking: for macOS (ARM64) the program, the library and the Python package, for Windows (x86-64) the
library, the Python package and the program with the feature serve alone. Python with venv is needed; Rust's targets
are added with rustup.

  --wine  also builds the library's tests and the Python package for Windows, and runs the tests of both under
          Wine (Debian's gcc-mingw-w64-x86-64 and wine64)
END
}

wine=no
for argument in "$@"; do
    case $argument in
        --wine) wine=yes ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done

. scripts/windows.sh
mac=aarch64-apple-darwin
rustup target add "$mac" "$windows"
"${pip[@]}" 'maturin>=1.9,<2' ziglang
# A C compiler for macOS, for the C code of a dependency: clang's names of the system are not zig's.
mkdir -p "$target/other-systems"
cat >"$target/other-systems/cc" <<END
#!/usr/bin/env bash
others=()
for argument in "\$@"; do
    case \$argument in --target=* | -mmacosx* | -arch | arm64) ;; *) others+=("\$argument") ;; esac
done
exec "$tools/bin/python" -m ziglang cc -target aarch64-macos "\${others[@]}"
END
chmod +x "$target/other-systems/cc"
export CC_aarch64_apple_darwin=$target/other-systems/cc PKG_CONFIG_ALLOW_CROSS=1
library=(--locked -p stereod-core -F stereod-core/image -F stereod-core/wgpu)
cargo check "${library[@]}" -p stereod -p stereod-python --target "$mac"
cargo check "${library[@]}" -p stereod-python --target "$windows"
# The C code of a dependency (zstd) is left out.
CC_x86_64_pc_windows_gnu=true AR_x86_64_pc_windows_gnu=true \
    cargo check --locked -p stereod --no-default-features -F serve --target "$windows"
if [[ $wine == no ]]; then exit; fi

built=$target/$windows/debug/deps
mkdir -p "$built"
make_primitives "$built"
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine64
cargo test "${library[@]}" --lib --target "$windows"

python=$target/other-systems/python
rm -rf "$built/wheel"
"$tools/bin/maturin" build --profile dev --locked --target "$windows" --interpreter python3.13 --out "$built/wheel"
# A newer NumPy uses functions that Wine 8 lacks.
make_python "$python" "$built"/wheel/*.whl numpy==2.1.0 opencv-python-headless matplotlib pillow pytest colorama
PYTHONDONTWRITEBYTECODE=1 wine64 "$python/python.exe" -m pytest -q -rs -p no:cacheprovider \
    --ignore tests/python/test_files.py tests/python </dev/null 2>&1 | cat
