#!/usr/bin/env bash
# Builds the Debian package of this checkout: target/debian/stereod_VERSION_ARCHITECTURE.deb.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/package.sh [--try]

Builds target/debian/stereod_*.deb with cargo-deb, which is installed with Cargo where it is missing.

  --try   then install it in a bare Debian 12 in a temporary folder, use it there, and purge it (root;
          mmdebstrap is installed with apt where it is missing)
END
}

try=no
case ${1:-} in
    '') ;;
    --try) try=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac

cargo deb --version >/dev/null 2>&1 || cargo install --locked cargo-deb
cargo build --release --locked
made=target/package
rm -rf "$made"
mkdir -p "$made/man"
target/release/stereod man --dir "$made/man"
target/release/stereod completions bash >"$made/stereod.bash"
target/release/stereod completions zsh >"$made/_stereod"
target/release/stereod completions fish >"$made/stereod.fish"
rm -f target/debian/stereod_*.deb
cargo deb --locked --no-build
package=$(echo target/debian/stereod_*.deb)
if [[ $try == no ]]; then exit; fi

command -v mmdebstrap >/dev/null || apt-get install -y mmdebstrap
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
sources=(/etc/apt/sources.list.d/debian.sources)
if [[ ! -e ${sources[0]} ]]; then sources=(/etc/apt/sources.list); fi
# The hook's shell expands its own $1. The package is installed as on a user's machine: by apt, with what it recommends.
# shellcheck disable=SC2016
mmdebstrap --quiet --variant=apt --include=ca-certificates \
    --customize-hook="copy-in scripts/package_try.sh /opt" \
    --customize-hook="upload $package /opt/stereod.deb" \
    --customize-hook='chroot "$1" bash /opt/package_try.sh' \
    bookworm "$root/bookworm" "${sources[@]}"
