#!/usr/bin/env bash
# Installs the missing dependencies for building and running stereod. Prints each step, asks for sudo
# only if something is missing, and does nothing the second time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/setup.sh [--tests] [--cameras] [--rust] [--check]

Installs what building and running stereod needs. On Debian and Ubuntu missing packages are installed
with apt; elsewhere they are named.

  --tests   also what the tests need (a virtual display, tools that look at its pictures, CUDA's run-time
            compiler, unpacked into target/nvrtc: no GPU is needed to compile its kernels; and Rust's library
            for ARM64)
  --cameras also what the simulated cameras of the tests need (OpenCV for Python)
  --rust    install or update Rust with rustup where it is missing or too old, without asking
  --check   only say what is missing (exit status 1 if anything is)
END
}

tests=no cameras=no rust=no check=no
for argument in "$@"; do
    case $argument in
        --tests) tests=yes ;;
        --cameras) cameras=yes ;;
        --rust) rust=yes ;;
        --check) check=yes ;;
        -h | --help) usage; exit 0 ;;
        *) echo "setup: unknown argument $argument" >&2; usage >&2; exit 2 ;;
    esac
done

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

packages=(
    build-essential pkg-config
    libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev
    gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
    gstreamer1.0-plugins-ugly gstreamer1.0-libav
    libvulkan1 mesa-vulkan-drivers
)
test_packages=(
    xvfb xdotool imagemagick x11-apps gstreamer1.0-tools python3 python3-pip python3-venv
    ca-certificates mount shellcheck systemd gir1.2-gst-rtsp-server-1.0 python3-gi
    mosquitto mosquitto-clients openssl
)
# Ubuntu has it as a snap only, which containers cannot install; scripts/browser.sh takes any Chromium.
if grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then test_packages+=(chromium); fi
if [[ $tests == yes ]]; then packages+=("${test_packages[@]}"); fi
if [[ $cameras == yes ]]; then packages+=(python3 python3-opencv); fi

as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "root rights are needed and there is no sudo; as root, run: $*"
    fi
}

# Debian and Ubuntu: the package database knows what is installed.
setup_apt() {
    local package missing=()
    for package in "${packages[@]}"; do
        if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    if [[ ${#missing[@]} -eq 0 ]]; then
        say "all ${#packages[@]} system packages are installed"
        return
    fi
    if [[ $check == yes ]]; then
        say "missing: ${missing[*]}"
        return 1
    fi
    say "installing ${#missing[@]} missing packages with apt: ${missing[*]}"
    if [[ $EUID -ne 0 ]]; then say "sudo may ask for your password for this"; fi
    as_root apt-get update || say "the package lists could not be updated; trying with the old ones"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "${missing[@]}" ||
        fail "apt could not install them (see above; on Ubuntu they need the component 'universe')"
}

# On other systems, look for the programs and libraries themselves.
setup_other() {
    local module element tool missing=()
    command -v cc >/dev/null || missing+=("a C compiler")
    if command -v pkg-config >/dev/null; then
        for module in gstreamer-1.0 gstreamer-app-1.0 gstreamer-video-1.0; do
            pkg-config --exists "$module >= 1.22" || missing+=("$module >= 1.22 (development files)")
        done
    else
        missing+=(pkg-config)
    fi
    if command -v gst-inspect-1.0 >/dev/null; then
        for element in uridecodebin3 videoconvert matroskamux jpegdec pngdec mp4mux h264parse \
            x264enc avdec_h264 avenc_ffv1; do
            gst-inspect-1.0 --exists "$element" || missing+=("GStreamer element $element")
        done
    else
        missing+=("gst-inspect-1.0")
    fi
    # ldconfig lies outside the PATH of ordinary users on some systems.
    if ! PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -F libvulkan.so.1 >/dev/null; then
        missing+=("the Vulkan loader, libvulkan.so.1")
    fi
    if [[ $tests == yes ]]; then
        for tool in Xvfb xdotool import xwd gst-launch-1.0 python3 shellcheck; do
            command -v "$tool" >/dev/null || missing+=("$tool")
        done
    fi
    if [[ $cameras == yes ]] && ! scripts/python.sh cv2 numpy >/dev/null 2>&1; then
        missing+=("OpenCV for python3")
    fi
    if [[ ${#missing[@]} -eq 0 ]]; then
        say "everything needed is installed"
        return
    fi
    {
        echo "setup: this is neither Debian nor Ubuntu, so nothing is installed for you. Missing:"
        printf '  %s\n' "${missing[@]}"
        cat <<'END'
Packages on Fedora (x264enc comes from RPM Fusion, https://rpmfusion.org):
  sudo dnf install gcc pkgconf-pkg-config gstreamer1-devel gstreamer1-plugins-base-devel \
      gstreamer1-plugins-base-tools gstreamer1-plugins-good gstreamer1-plugins-bad-free \
      gstreamer1-plugins-ugly gstreamer1-plugin-libav vulkan-loader mesa-vulkan-drivers
  for the tests also: xorg-x11-server-Xvfb xdotool ImageMagick xwd python3 ShellCheck python3-opencv
Packages on Arch:
  sudo pacman -S --needed base-devel pkgconf gstreamer gst-plugins-base gst-plugins-good \
      gst-plugins-bad gst-plugins-ugly gst-libav vulkan-icd-loader vulkan-swrast
  for the tests also: xorg-server-xvfb xdotool imagemagick xorg-xwd python shellcheck python-opencv
END
    } >&2
    return 1
}

# The oldest Rust that Cargo.toml allows.
wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

# Whether version $1 is at least version $2.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

setup_rust() {
    # rustup's folder is not yet on the PATH of the shell that installed it.
    PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    local found='' state
    if command -v cargo >/dev/null; then found=$(cargo --version 2>/dev/null | cut -d ' ' -f 2); fi
    if [[ -n $found ]] && at_least "$found" "$wanted"; then
        say "Rust $found is installed ($wanted or newer is needed)"
        return
    fi
    state="Rust is missing"
    if [[ -n $found ]]; then state="Rust $found is too old"; fi
    local root='' packaged=no install="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    if [[ $EUID -ne 0 ]]; then root='sudo '; fi
    if command -v rustup >/dev/null; then
        install="rustup update stable && rustup default stable"
    elif apt-get install --simulate rustup >/dev/null 2>&1; then # Debian 13, Ubuntu 24.04 and later
        packaged=yes install="${root}apt-get install rustup && rustup default stable"
    elif ! command -v curl >/dev/null && command -v apt-get >/dev/null; then
        install="${root}apt-get install curl ca-certificates && $install"
    fi
    if [[ $rust == no && $check == no && -t 0 && -t 1 ]]; then
        say "$state; $wanted or newer is needed. It can be installed now, for this user only, with"
        say "  $install"
        local answer
        read -r -p "setup: do that? [y/N] " answer
        if [[ $answer == [yY]* ]]; then rust=yes; fi
    fi
    if [[ $rust == no || $check == yes ]]; then
        echo "setup: $state; $wanted or newer is needed. Install it with rustup and start again:" >&2
        echo "  $install" >&2
        echo "or let scripts/setup.sh --rust do so." >&2
        return 1
    fi
    if [[ $packaged == yes ]]; then
        as_root apt-get install --yes --no-install-recommends rustup || fail "apt could not install rustup"
    fi
    if command -v rustup >/dev/null; then
        say "installing or updating Rust with rustup for this user"
        rustup toolchain install stable --no-self-update --profile minimal --component clippy,rustfmt ||
            fail "rustup could not install Rust"
        rustup default stable
    else
        say "installing Rust with rustup for this user (~/.cargo, ~/.rustup)"
        if ! command -v curl >/dev/null && command -v apt-get >/dev/null; then
            as_root apt-get install --yes --no-install-recommends curl ca-certificates
        fi
        command -v curl >/dev/null || fail "curl is needed for that; install it and start again"
        local script
        script=$(mktemp)
        curl --proto '=https' --tlsv1.2 -sSf -o "$script" https://sh.rustup.rs ||
            fail "rustup could not be fetched"
        sh "$script" -y --no-modify-path --profile minimal --component clippy,rustfmt ||
            fail "rustup could not install Rust"
        rm -f "$script"
        say "for your own shell: . ${CARGO_HOME:-$HOME/.cargo}/env"
    fi
}

# CUDA's run-time compiler, for the test that compiles the kernels: a wheel, unpacked, never installed.
# If it is not available, that test is skipped with a note; nothing else needs it.
nvrtc_version=13.0.88
setup_nvrtc() {
    local folder=${CARGO_TARGET_DIR:-target}/nvrtc
    if [[ -e $folder/$nvrtc_version ]]; then
        say "NVRTC $nvrtc_version is in $folder"
        return
    fi
    if [[ $check == yes ]]; then
        say "missing: NVRTC $nvrtc_version in $folder (the kernels' test is skipped without it)"
        return
    fi
    local python
    if ! python=$(scripts/python.sh pip zipfile 2>/dev/null); then
        say "NVRTC is not fetched, because python3 has no pip: the kernels' test will be skipped"
        return
    fi
    say "fetching NVRTC $nvrtc_version into $folder (90 MB, once)"
    rm -rf "$folder.new"
    if "$python" -m pip download --quiet --no-deps --only-binary=:all: --dest "$folder.new" \
        "nvidia-cuda-nvrtc==$nvrtc_version" &&
        "$python" -m zipfile -e "$folder.new"/nvidia_cuda_nvrtc-*.whl "$folder.new"; then
        rm -f "$folder.new"/*.whl
        : >"$folder.new/$nvrtc_version"
        rm -rf "$folder"
        mv "$folder.new" "$folder"
    else
        rm -rf "$folder.new"
        say "NVRTC could not be fetched: the kernels' test will be skipped"
    fi
}

# Rust's standard library for ARM64, for the check that the code compiles there. If it is not available, that
# check is skipped with a note.
setup_arm64() {
    local target=aarch64-unknown-linux-gnu
    if [[ -d $(rustc --print target-libdir --target $target) ]]; then
        say "Rust's library for ARM64 is installed"
    elif [[ $check == yes ]]; then
        say "missing: Rust's library for ARM64 (a check is skipped without it)"
    elif ! { command -v rustup && rustup target add $target; } >/dev/null 2>&1; then
        say "Rust's library for ARM64 could not be fetched: whether the code compiles there is not checked"
    fi
}

# maturin, for the test of the Python package. If it is not available, that test is skipped with a note.
setup_maturin() {
    local tools=${CARGO_TARGET_DIR:-target}/python-tools
    if [[ -x $tools/bin/maturin ]]; then
        say "maturin is in $tools"
    elif [[ $check == yes ]]; then
        say "missing: maturin in $tools (the Python package is not tested without it)"
    elif ! { "$(scripts/python.sh venv ensurepip)" -m venv "$tools" && "$tools/bin/pip" install --quiet 'maturin>=1.9,<2'; } 2>/dev/null; then
        say "maturin could not be fetched: the Python package will not be tested"
    fi
}

status=0
# First, because the packages, 1 GB, are of no use without Rust.
setup_rust || status=1
if [[ $status -ne 0 && $check == no ]]; then exit 1; fi
if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    setup_apt || status=1
else
    setup_other || status=1
fi
if [[ $tests == yes ]]; then
    setup_nvrtc
    setup_arm64
    setup_maturin
fi
exit "$status"
