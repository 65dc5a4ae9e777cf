#!/usr/bin/env bash
# Builds the Debian package of this checkout, target/debian/stereod_VERSION_ARCHITECTURE.deb, and one with its debug symbols.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/package.sh [--arm64] [--try]

Installs what is missing (scripts/setup.sh; cargo-deb with Cargo), and builds target/debian/stereod_*.deb and
stereod-dbgsym_*.ddeb (debug symbols).

  --arm64 for 64-bit ARM, on x86-64, with what scripts/arm64.sh sets up (root)
  --try   instead install the package that is there in a bare Debian 12 in a temporary folder, use it, and purge
          it (root; mmdebstrap is installed with apt where it is missing)
END
}

target=${CARGO_TARGET_DIR:-target}
try=no architecture=$(dpkg --print-architecture) built=$target/release
for argument in "$@"; do
    case $argument in
        --try) try=yes ;;
        --arm64) architecture=arm64 ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done

package=$target/debian/stereod_$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)_$architecture.deb
if [[ $try == yes ]]; then
    [[ -e $package ]] || { echo "package: there is no $package; scripts/package.sh builds it" >&2; exit 1; }
    command -v mmdebstrap >/dev/null || apt-get install -y mmdebstrap
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    sources=(/etc/apt/sources.list.d/debian.sources)
    if [[ ! -e ${sources[0]} ]]; then sources=(/etc/apt/sources.list); fi
    # The hook's shell expands its own $1. The package is installed as on a user's machine: by apt, with what it recommends.
    # shellcheck disable=SC2016
    mmdebstrap --quiet --variant=apt --architectures="$architecture" --include=ca-certificates \
        --customize-hook="copy-in scripts/package_try.sh /opt" \
        --customize-hook="upload $package /opt/stereod.deb" \
        --customize-hook='chroot "$1" bash /opt/package_try.sh' \
        bookworm "$root/bookworm" "${sources[@]}"
    exit
fi

scripts/setup.sh
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
cargo deb --version >/dev/null 2>&1 || cargo install --locked cargo-deb
deb=(cargo deb --locked --no-build --dbgsym --output "$target/debian/")
emulator=()
if [[ $architecture == "$(dpkg --print-architecture)" ]]; then
    cargo build --release --locked --features ros2
else
    scripts/arm64.sh --build
    built=$target/aarch64-unknown-linux-gnu/release
    other=$target/arm64/root
    emulator=(qemu-aarch64-static -L "$other")
    # Dependencies are looked up in the other Debian's libraries and packages, which replace this machine's in
    # a mount namespace.
    # shellcheck disable=SC2016
    deb=(unshare --mount bash -euc '
        mkdir -p /usr/lib/aarch64-linux-gnu
        mount --bind "$1/usr/lib/aarch64-linux-gnu" /usr/lib/aarch64-linux-gnu
        mount --bind "$1/var/lib/dpkg" /var/lib/dpkg
        shift
        exec "$@"' - "$other" env STRIP_aarch64-linux-gnu=aarch64-linux-gnu-strip \
        OBJCOPY_aarch64-linux-gnu=aarch64-linux-gnu-objcopy "${deb[@]}" --target aarch64-unknown-linux-gnu)
fi
# In the checkout wherever Cargo builds, because Cargo.toml names it.
made=target/package
rm -rf "$made"
mkdir -p "$made/man"
stereod=("${emulator[@]}" "$built/stereod")
"${stereod[@]}" man --dir "$made/man"
"${stereod[@]}" completions bash >"$made/stereod.bash"
"${stereod[@]}" completions zsh >"$made/_stereod"
"${stereod[@]}" completions fish >"$made/stereod.fish"
"$(scripts/python.sh json)" scripts/licences.py --features ros2 >"$made/licences.txt"
rm -f "$target"/debian/stereod{,-dbgsym}_*_"$architecture".*deb
"${deb[@]}"
# cargo-deb only warns where it does not find the libraries' packages; and a program that took what is private in
# the C library would be bound to its one version.
depends=$(dpkg-deb --field "$package" Depends)
if [[ $depends != *libc6* || $depends == *'libc6 (<<'* ]]; then
    echo "package: the dependencies of $package are wrong: $depends" >&2
    exit 1
fi
