#!/usr/bin/env bash
# Builds the wheel stereod-program for Windows (x86-64) in target/wheels, on Linux.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/program_wheel_windows.sh [--try [PROGRAM]]

Builds target/wheels/stereod_program-*-win_amd64.whl, the program without window, wgpu, MAVLink and ROS 2. On Windows, pip
installs GStreamer's packages on PyPI with it. Needs what a build for this machine needs; MinGW is installed with apt
where it is missing. All that is made on the way is kept in target/windows-wheel.

  --try [PROGRAM]  instead install the wheel that is there with pip for Windows and use it, under Wine (Debian's wine64
                   and curl); its maps must be those of PROGRAM, a stereod for this machine
END
}
case ${1:-} in
    '' | --try) ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac

command -v x86_64-w64-mingw32-gcc >/dev/null || apt-get install --yes --no-install-recommends gcc-mingw-w64-x86-64
. scripts/windows.sh
made=$target/windows-wheel
features=serve,boards,evaluate,bags,mqtt
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)

if [[ ${1:-} == --try ]]; then
    python=$made/python tried=$made/tried
    make_python "$python" pip
    printf '%s\n' 'Lib\site-packages' 'import site' >>"$python/python313._pth"
    under_wine() { wine64 "$@" </dev/null 2>&1 | cat; }
    under_wine "$python/python.exe" -m pip install "$target/wheels/stereod_program-$version-py3-none-win_amd64.whl"
    make_primitives "$python/Lib/site-packages/stereod_program"
    use() { # FOLDER PROGRAM...
        mkdir "$1"
        cd "$1"
        "${@:2}" --version
        "${@:2}" run --demo --frames 10 --headless --pictures maps --record maps.mkv
        "${@:2}" match maps/000000.png maps/000001.png --output map.pfm
        "${@:2}" run --side-by-side maps.mkv --headless --pictures of-maps
    }
    rm -rf "$tried"
    mkdir -p "$tried"
    (use "$tried/windows" under_wine "$python/Scripts/stereod.exe")
    if [[ -n ${2:-} ]]; then
        program=$(realpath "$2")
        (use "$tried/here" "$program")
        # It has times of files.
        diff --recursive --exclude=.stereod-files "$tried/windows" "$tried/here"
    fi
    under_wine "$python/Scripts/stereod.exe" run --demo --frames 200 --headless --serve 127.0.0.1:8080 --set window.at_end=close &
    curl --silent --fail --retry 60 --retry-delay 1 --retry-all-errors --output "$tried/depth.png" \
        http://127.0.0.1:8080/snapshot/depth.png || { echo "the page shows no depth" >&2; exit 1; }
    wait "$!"
    exit
fi

rustup target add "$windows"
"${pip[@]}" wheel
rm -rf "$made/gstreamer" "$made/wheel"
# The linker finds here the functions that src/late.rs has not, because they are only mentioned.
"${pip[@]}" --target "$made/gstreamer" --no-deps --only-binary=:all: --platform win_amd64 'gstreamer-libs~=1.28.0'
link=()
cd "$made/gstreamer"
for library in glib-2.0 gobject-2.0 gio-2.0 gstreamer-1.0 gstbase-1.0 gstvideo-1.0 gstapp-1.0; do
    {
        printf 'LIBRARY "%s-0.dll"\nEXPORTS\n' "$library"
        x86_64-w64-mingw32-objdump -p "gstreamer_libs/bin/$library-0.dll" | sed -n 's/^\t\[ *[0-9]*\] \(_*g\)/\1/p'
    } >"$library.def"
    x86_64-w64-mingw32-dlltool --input-def "$library.def" --output-delaylib "lib$library.a"
    link+=("-l$library")
done
cd - >/dev/null
# Paths of this machine must not get into the program; scripts/release.sh sets more of them.
: "${RUSTFLAGS=--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/usr/src/cargo}"
export RUSTFLAGS SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
CARGO_TARGET_DIR=$made PKG_CONFIG_ALLOW_CROSS=1 CARGO_PROFILE_RELEASE_STRIP=symbols \
    cargo rustc --release --locked --target "$windows" --no-default-features -F "$features" --bin stereod -- \
    -L "$made/gstreamer" -C link-args="-Wl,--start-group ${link[*]} -ldelayimp -Wl,--end-group"

folder=$made/wheel/stereod_program-$version
about=$folder/stereod_program-$version.dist-info
mkdir -p "$folder/stereod_program" "$target/wheels"
cp src/python/stereod_program/__init__.py "$made/$windows/release/stereod.exe" "$folder/stereod_program/"
. scripts/program_wheel_metadata.sh
write_metadata "$about" "$version" py3-none-win_amd64
"$(scripts/python.sh json)" scripts/licences.py --no-default-features -F "$features" --target "$windows" >"$about/licenses/crates.txt"
cp /usr/share/doc/mingw-w64-common/copyright "$about/licenses/mingw-w64.txt"
"$tools/bin/wheel" pack --dest-dir "$target/wheels" "$folder"
ls -l "$target/wheels"
