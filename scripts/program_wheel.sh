#!/usr/bin/env bash
# Builds the wheel stereod-program, the program with a GStreamer of its own, in target/wheels.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/program_wheel.sh [--arm64] [--without-updates] [--try [SUITE...]]

Builds target/wheels/stereod_program-*.whl for this machine's processor in a Debian 11, so that it runs from glibc
2.31 on. GStreamer is built there from the sources of Debian 12: what stereod needs, nothing under the GPL. Both are
kept in target/program-wheel-ARCHITECTURE; remove that folder to build them anew. Needs Debian and root; mmdebstrap is
installed with apt where it is missing.

  --arm64   for 64-bit ARM, on x86-64; tried under QEMU, which scripts/arm64.sh sets up
  --without-updates
            take Debian 11 without its security updates, where a mirror lacks some; not for a release
  --try     instead install the wheel that is there in bare Debians (default: bullseye bookworm trixie) and use it
END
}

try=no updates=yes native=$(dpkg --print-architecture) processor=$(uname -m)
architecture=$native
while [[ $# -gt 0 && $try == no ]]; do
    case $1 in
        --arm64) architecture=arm64 processor=aarch64 ;;
        --without-updates) updates=no ;;
        --try) try=yes ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done

fail() { echo "program_wheel: $*" >&2; exit 1; }

[[ $EUID -eq 0 ]] || fail "root rights are needed, to make a Debian and to build in it"
grep -qx 'ID=debian' /etc/os-release || fail "this needs Debian, whose mirror has its older releases"
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
sources=/etc/apt/sources.list.d/debian.sources
if [[ ! -e $sources ]]; then sources=/etc/apt/sources.list; fi
command -v mmdebstrap >/dev/null || apt-get install --yes --no-install-recommends mmdebstrap

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wheels=$target/wheels
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Writes this machine's mirrors of another release.
of_suite() { # SUITE
    sed "s/\b$codename\b/$1/g" "$sources" >"$scratch/$1.${sources##*.}"
}

make_debian() { # SUITE FOLDER OPTION...
    of_suite "$1"
    mmdebstrap --quiet --variant=apt "${@:3}" "$1" "$2" "$scratch/$1.${sources##*.}"
}

# Mirrors drop the security updates of an old release for one architecture before the other.
printf 'Package: *\nPin: release l=Debian-Security\nPin-Priority: -1\n' >"$scratch/no-updates"
without_updates="--setup-hook=copy-in $scratch/no-updates /etc/apt/preferences.d"

if [[ $try == yes ]]; then
    wheel=$(echo "$wheels"/stereod_program-*_"$processor".whl)
    [[ -e $wheel ]] || fail "there is no $wheel; this script without --try builds it"
    if [[ $architecture != "$native" ]]; then scripts/arm64.sh --emulate; fi
    if [[ $# -eq 0 ]]; then set -- bullseye bookworm trixie; fi
    for suite in "$@"; do
        # The hook's shell expands its own $1.
        # shellcheck disable=SC2016
        make_debian "$suite" "$scratch/$suite" "$without_updates" --architectures="$architecture" \
            --include=python3-venv --customize-hook="copy-in $wheel scripts/program_wheel_try.sh /opt" \
            --customize-hook='chroot "$1" bash /opt/program_wheel_try.sh'
        rm -rf "${scratch:?}/$suite"
    done
    exit
fi

PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
cargo fetch --locked --quiet
triple=$processor-unknown-linux-gnu
[[ -d $(rustc --print target-libdir --target "$triple") ]] || rustup target add "$triple"
made=$target/program-wheel-$architecture
root=$made/root
mkdir -p "$made/cargo" "$wheels"
"$(scripts/python.sh json)" scripts/licences.py --features ros2 --target "$triple" >"$made/crates.txt"
if [[ ! -e $made/root.made ]]; then
    of_suite bookworm
    newer=$scratch/bookworm.${sources##*.}
    sed -i 's/^Types: .*/Types: deb-src/; s/^deb /deb-src /' "$newer"
    packages=(
        build-essential pkg-config nasm bison flex ninja-build python3-pip python3-wheel ca-certificates
        {libglib2.0,libgudev-1.0,libjpeg62-turbo,liborc-0.4,libpng,libvpx}-dev:"$architecture"
    )
    if [[ $architecture != "$native" ]]; then packages+=("crossbuild-essential-$architecture"); fi
    options=(--architectures="$native,$architecture" --include="$(IFS=,; echo "${packages[*]}")"
        --customize-hook="copy-in $newer /etc/apt/sources.list.d")
    if [[ $updates == no ]]; then options+=("$without_updates"); fi
    rm -rf "$root"
    make_debian bullseye "$root" "${options[@]}" ||
        fail "if files of security updates are missing, the mirror has dropped them: --without-updates does without"
    rm -f "$root/etc/apt/preferences.d/no-updates"
    mkdir -p "$root"/usr/src/{stereod,cargo,rustup,made}
    : >"$made/root.made"
fi

# Builds with this machine's Rust and crates under the paths of scripts/release.sh.
# shellcheck disable=SC2016
unshare --mount bash -euc '
    root=$1
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
    mount --bind . "$root/usr/src/stereod"
    mount --bind "$2" "$root/usr/src/cargo"
    mount --bind "$3" "$root/usr/src/rustup"
    mount --bind "$4" "$root/usr/src/made"
    exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="$5" \
        PATH=/usr/src/cargo/bin:/usr/local/bin:/usr/bin:/bin bash /usr/src/stereod/scripts/program_wheel_inside.sh "$6"' \
    - "$root" "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}" "$made" \
    "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" "$processor"
rm -f "$wheels"/stereod_program-*_"$processor".whl
mv "$made"/out/*.whl "$wheels"
ls -l "$wheels"
