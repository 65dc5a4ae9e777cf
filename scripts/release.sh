#!/usr/bin/env bash
# Builds and checks everything that a release uploads, in target/release-VERSION. Uploads nothing (docs/releasing.md).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/release.sh [--arm64] [--sign KEY] [PART...]

Builds the parts of a release from the last commit into target/release-VERSION, or only those that are named:

  source    the source as a tarball
  crates    the six crates, as `scripts/crates.sh publish` uploads them
  sbom      a bill of materials in CycloneDX's format (those of the wheels are in the wheels)
  package   the Debian package, its debug symbols, and a tarball of its files for other distributions
  wheel     the Python wheel, on x86-64 for Windows, too
  program   the program with its own GStreamer as a wheel (root), and on x86-64 for Windows
  check     nothing; it checks all crates for known vulnerabilities and origin, the packages, the wheels,
            the desktop entry and the AppStream metadata
  sums      SHA256SUMS, which the other parts write as well

  --arm64     also the package and the wheels for 64-bit ARM, on x86-64 Debian (root)
  --sign KEY  signs SHA256SUMS with this key of GnuPG

The same commit gives the same bytes in any folder, if compilers, tools and development packages are the same. Missing
tools are installed with Cargo, pip and apt.
END
}

arm64=no key='' parts=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --arm64) arm64=yes ;;
        --sign) key=${2:?KEY is missing}; shift ;;
        source | crates | sbom | package | wheel | program | check | sums) parts+=("$1") ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
if [[ ${#parts[@]} -eq 0 ]]; then parts=(source crates sbom package wheel program check); fi

say() { echo "release: $*"; }
fail() { echo "release: $*" >&2; exit 1; }

[[ $PWD != *' '* ]] || fail "the compiler's flags cannot name a folder with a space: $PWD"
[[ -z $(git status --porcelain) ]] || fail "there are changes that are not committed (git status)"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
commit=$(git rev-parse HEAD)
made=${CARGO_TARGET_DIR:-target}
out=$made/release-$version
# Files of different commits never lie side by side.
if [[ $(cat "$out/COMMIT" 2>/dev/null) != "$commit" ]]; then rm -rf "$out"; fi
mkdir -p "$out"
echo "$commit" >"$out/COMMIT"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Times and folders of this machine must not get into the files.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
cargo fetch --locked --quiet
RUSTFLAGS="--remap-path-prefix=$PWD=/usr/src/stereod"
RUSTFLAGS+=" --remap-path-prefix=$(realpath -m "$made")=/usr/src/stereod/target"
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    RUSTFLAGS+=" --remap-path-prefix=$registry=/usr/src/cargo"
done
export SOURCE_DATE_EPOCH RUSTFLAGS

pack() { # FOLDER, below $scratch
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --directory "$scratch" "$1" | gzip -9n >"$out/$1.tar.gz"
}

install_cargo() { # NAME
    command -v "cargo-$1" >/dev/null || cargo install --locked "cargo-$1"
}

install_debian() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || apt-get install --yes --no-install-recommends "$2"
}

build_source() {
    git archive --format=tar --prefix="stereod-$version/" HEAD | gzip -9n >"$out/stereod-$version.tar.gz"
}

build_crates() {
    CARGO_TARGET_DIR=$scratch/crates scripts/crates.sh package --no-verify
    cp "$scratch"/crates/package/*.crate "$out"
    # The most that crates.io takes.
    [[ -z $(find "$out" -name '*.crate' -size +10M) ]] || fail "a crate is larger than 10 MB"
}

# It is written next to each Cargo.toml, so in a copy of the source.
build_sbom() {
    install_cargo cyclonedx
    mkdir "$scratch/source"
    git archive HEAD | tar --extract --directory "$scratch/source"
    (cd "$scratch/source" && cargo cyclonedx --spec-version 1.5 --format json --features ros2 --target x86_64-unknown-linux-gnu)
    sed "s|$scratch/source|/usr/src/stereod|g" "$scratch/source/stereod.cdx.json" >"$out/stereod-$version.cdx.json"
}

build_package() { # ARCHITECTURE [--arm64]
    local folder=stereod-$version-linux-$1
    scripts/package.sh "${@:2}"
    cp "$made/debian/stereod_${version}_$1.deb" "$made/debian/stereod-dbgsym_${version}_$1.ddeb" "$out"
    dpkg-deb --extract "$out/stereod_${version}_$1.deb" "$scratch/package-$1"
    mv "$scratch/package-$1/usr" "$scratch/$folder"
    install --mode=644 LICENSE-* "$scratch/$folder/share/doc/stereod"
    pack "$folder"
}

build_wheel() {
    rm -rf "$made/wheels"
    scripts/wheel.sh "$@"
    cp "$made"/wheels/*.whl "$out"
}

build_program() {
    scripts/program_wheel.sh
    if [[ $arm64 == yes ]]; then scripts/program_wheel.sh --arm64; fi
    if [[ $(uname -m) == x86_64 ]]; then scripts/program_wheel_windows.sh; fi
    cp "$made"/wheels/stereod_program-*.whl "$out"
}

check() {
    install_cargo deny
    cargo deny --locked --config config/deny.toml check
    install_debian desktop-file-validate desktop-file-utils
    desktop-file-validate config/stereod.desktop
    install_debian appstreamcli appstream
    appstreamcli validate --no-net config/*.metainfo.xml
    if compgen -G "$out/*.deb" >/dev/null; then
        install_debian lintian lintian
        lintian --fail-on error,warning "$out"/*.deb
    fi
    if compgen -G "$out/*.whl" >/dev/null; then
        [[ -x $made/python-tools/bin/pip ]] || "$(scripts/python.sh venv ensurepip)" -m venv "$made/python-tools"
        "$made/python-tools/bin/pip" install --quiet --disable-pip-version-check twine
        "$made/python-tools/bin/twine" check --strict "$out"/*.whl
        # The most that PyPI takes.
        [[ -z $(find "$out" -name '*.whl' -size +100M) ]] || fail "a wheel is larger than 100 MB"
    fi
}

for part in "${parts[@]}"; do
    say "$part"
    case $part in
        source) build_source ;;
        crates) build_crates ;;
        sbom) build_sbom ;;
        package)
            build_package "$(dpkg --print-architecture)"
            if [[ $arm64 == yes ]]; then build_package arm64 --arm64; fi
            ;;
        wheel)
            processors=("$(uname -m)")
            if [[ $arm64 == yes ]]; then processors+=(aarch64); fi
            triples=("${processors[@]/%/-unknown-linux-gnu}")
            if [[ $(uname -m) == x86_64 ]]; then
                install_debian x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
                triples+=(x86_64-pc-windows-gnu)
            fi
            build_wheel "${triples[@]}"
            ;;
        program) build_program ;;
        check) check ;;
        sums) ;;
    esac
done

cd "$out"
rm -f SHA256SUMS*
sha256sum -- * >"$scratch/sums"
mv "$scratch/sums" SHA256SUMS
if [[ -n $key ]]; then gpg --local-user "$key" --armor --detach-sign SHA256SUMS; fi
say "$out:"
ls -l
