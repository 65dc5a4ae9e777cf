#!/usr/bin/env bash
# Builds stereod for 64-bit ARM on an x86-64 machine and tests it there, emulated by QEMU in a Debian of
# that architecture. All its files lie in target/arm64 and in Cargo's folders.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
    cat <<'END'
Usage: scripts/arm64.sh [--build | --emulate] [--stereod PROGRAM] [--data LEFT RIGHT]

Installs what is missing to build for ARM64 (on Debian, as root), builds, and runs emulated: the tests of the
vector operations, of the CPU engine and of the learned prior, src/core/tests/engine_parity.rs, and the program on
the demo scene, whose output must be that of this machine's own build. Takes most of an hour on two cores.

  --build             only build target/aarch64-unknown-linux-gnu/release/stereod, as for the package
  --emulate           only let the kernel run programs for ARM64 by QEMU
  --stereod PROGRAM   the x86-64 program to compare with, instead of building it
  --data LEFT RIGHT   also compare on the first pairs of these two videos
END
}

only='' native='' data=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --build | --emulate) only=$1 ;;
        --stereod) native=$(realpath "$2") || exit 2; shift ;;
        --data) data=("$(realpath "$2")" "$(realpath "$3")") || exit 2; shift 2 ;;
        -h | --help) usage; exit 0 ;;
        *) echo "arm64: unknown argument $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done

say() { echo "arm64: $*"; }
fail() { echo "arm64: $*" >&2; exit 1; }

target=aarch64-unknown-linux-gnu
made=$(realpath -m "${CARGO_TARGET_DIR:-target}")
root=$made/arm64/root

[[ $(uname -m) == x86_64 ]] || fail "this is for x86-64; on the ARM machine itself, scripts/test.sh tests"
[[ $EUID -eq 0 ]] || fail "root rights are needed, to make a Debian of the other architecture and to run in it"
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
grep -qx 'ID=debian' /etc/os-release || fail "this needs Debian, whose packages for ARM64 lie beside its own"
scripts/setup.sh </dev/null || exit 1
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

# --- Build and run ---

setup_packages() {
    local package missing=()
    for package in gcc-aarch64-linux-gnu qemu-user-static mmdebstrap arch-test; do
        if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    if [[ ${#missing[@]} -eq 0 ]]; then return; fi
    say "installing ${missing[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}" ||
        fail "apt could not install them"
}

# The kernel hands programs of the other architecture to QEMU.
setup_emulation() {
    if arch-test arm64 >/dev/null 2>&1; then return; fi
    say "telling the kernel that QEMU runs programs for ARM64 (until the next start of the machine)"
    local formats=/proc/sys/fs/binfmt_misc
    [[ -e $formats/register ]] || mount -t binfmt_misc binfmt_misc "$formats" || fail "the kernel cannot do that"
    cat /usr/lib/binfmt.d/qemu-aarch64.conf >$formats/register
    arch-test arm64 >/dev/null || fail "programs for ARM64 do not run"
}

# A Debian to link with and to run in. GStreamer's development files for two architectures exclude each other,
# so that they cannot be installed beside this machine's own.
setup_root() {
    if [[ -e $root.made ]]; then return; fi
    say "making a Debian for ARM64 in $root (ten minutes, 1 GB)"
    local packages=(
        libc6-dev libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev gstreamer1.0-plugins-base
        gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav
    )
    local sources=/etc/apt/sources.list.d/debian.sources list
    if [[ ! -e $sources ]]; then sources=/etc/apt/sources.list; fi
    list=$(IFS=,; echo "${packages[*]}")
    rm -rf --one-file-system "$root"
    mkdir -p "$(dirname "$root")"
    mmdebstrap --quiet --variant=apt --architectures=arm64 --include="$list" \
        --aptopt='APT::Install-Recommends "false"' "$release" "$root" "$sources" ||
        fail "mmdebstrap could not make it"
    # Absolute links would lead into this machine's own libraries. Without libm.so the linker takes libm.a, which
    # binds the program to this one version of the C library.
    local link
    while read -r link; do
        ln -srfn "$root$(readlink "$link")" "$link"
    done < <(find "$root/usr/lib/aarch64-linux-gnu" -maxdepth 1 -lname '/*')
    touch "$root.made"
}

# The compiler is RUSTC if that is set. Otherwise the target's standard library comes from rustup or, if that fails,
# from Debian with its compiler, unpacked and not installed, because the packages exclude rustup's.
setup_compiler() {
    if [[ -n ${RUSTC:-} ]]; then
        say "the compiler is RUSTC, $("$RUSTC" --version)"
        return
    fi
    local library
    library=$(rustc --print target-libdir --target $target)
    if [[ ! -d $library ]] && command -v rustup >/dev/null; then
        say "asking rustup for $target"
        rustup target add $target >/dev/null 2>&1 || true
    fi
    if [[ -d $library ]]; then
        say "the compiler is $(rustc --version)"
        return
    fi
    local unpacked=$made/arm64/rust download=$made/arm64/download package runtime
    if [[ ! -x $unpacked/rustc ]]; then
        say "rustup has no $target here: unpacking Debian's compiler into $unpacked"
        rm -rf "$unpacked" "$download"
        mkdir -p "$unpacked" "$download"
        # Libraries of the compiler itself that are not installed.
        runtime=$(apt-cache depends libstd-rust-web-dev | sed -n 's/^ *Depends: //p')
        local wanted=(rustc-web libstd-rust-web-dev "$runtime")
        while read -r package; do
            dpkg-query -W "$package" >/dev/null 2>&1 || wanted+=("$package")
        done < <(apt-cache depends "$runtime" | sed -n 's/^ *Depends: //p')
        (cd "$download" && apt-get download "${wanted[@]}") || fail "Debian's compiler could not be fetched"
        chroot "$root" sh -c 'apt-get update && cd /tmp && apt-get download libstd-rust-web-dev' ||
            fail "Debian's standard library for ARM64 could not be fetched"
        mv "$root"/tmp/libstd-rust-web-dev_*.deb "$download/"
        for package in "$download"/*.deb; do dpkg -x "$package" "$unpacked"; done
        cat >"$unpacked/rustc" <<END
#!/bin/sh
export LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu:$unpacked/usr/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
exec $unpacked/usr/bin/rustc --sysroot $unpacked/usr "\$@"
END
        chmod +x "$unpacked/rustc"
        rm -rf "$download"
    fi
    export RUSTC=$unpacked/rustc
    say "the compiler is Debian's $("$RUSTC" --version)"
}

setup_packages
setup_emulation
if [[ $only == --emulate ]]; then exit; fi
setup_root
setup_compiler

# Environment for Cargo; scripts/package.sh reads it from here as well.
environment=$made/arm64/environment
cat >"$environment" <<END
${RUSTC:+export RUSTC=$RUSTC}
export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CFLAGS_aarch64_unknown_linux_gnu=--sysroot=$root
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C link-arg=--sysroot=$root${RUSTFLAGS:+ $RUSTFLAGS}"
unset RUSTFLAGS # Cargo would take them in place of those above.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L $root"
END
# In a subshell, because the environment must not affect this machine's own build.
cross() (
    # shellcheck source=/dev/null
    . "$environment"
    "$@"
)

if [[ $only == --build ]]; then
    cross cargo build --release --locked --features ros2 --target $target || exit 1
    say "built $made/$target/release/stereod"
    exit
fi

# --- Checks ---

. scripts/checks.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A command in the Debian for ARM64, where the scratch folder is /mnt; the mounts are gone when it ends.
inside() {
    # The inner shell expands its own parameters.
    # shellcheck disable=SC2016
    unshare --mount --fork bash -c '
        root=$1 scratch=$2
        shift 2
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
            mount --bind "$scratch" "$root/mnt" &&
            exec chroot "$root" env -i -C /mnt PATH=/usr/bin:/bin HOME=/mnt/home LC_ALL=C.UTF-8 "$@"
    ' - "$root" "$scratch" "$@"
}

# Runs both programs in the scratch folder with the same arguments and compares their images. A pair takes
# seconds here, so the watchdog must not treat the engine as hanging.
same() { # NAME ARGUMENTS OF stereod run...
    local name=$1 hash
    shift
    (cd "$scratch" && "$native" run --headless --engine cpu --pictures "$name-x86-64" "$@") &&
        inside ./stereod run --headless --engine cpu --pictures "$name-arm64" "$@" || return 1
    hash=$(cd "$scratch/$name-x86-64" && sha256sum -- *.png) || return 1
    (cd "$scratch/$name-arm64" && sha256sum --check --quiet <<<"$hash") || return 1
    [[ $(find "$scratch/$name-x86-64" -name '*.png' | wc -l) == $(find "$scratch/$name-arm64" -name '*.png' | wc -l) ]] ||
        return 1
    say "$name: $(wc -l <<<"$hash") maps, the same on x86-64 and ARM64: SHA-256 $(sha256sum <<<"$hash" | cut -c 1-16)"
}

same_for_each_cost() {
    local cost
    for cost in combined census ad mi sad ssd zsad zssd; do
        same "$cost" --demo --demo-size 256x192 --frames 3 --cost "$cost" || return 1
    done
}

same_for_paths() {
    local paths
    for paths in 0 5 8 16; do
        same "paths-$paths" --demo --demo-size 256x192 --frames 2 --paths "$paths" || return 1
    done
}

# A pair with a texture of its own, shifted by 5 in the upper half and by 11 in the lower one.
still_pair() {
    local eye
    for eye in 0 1; do
        awk -v eye="$eye" 'BEGIN {
            print "P2\n160 100\n255"
            for (y = 0; y < 100; y++)
                for (x = 0; x < 160; x++) {
                    u = x + eye * (y < 50 ? 5 : 11)
                    print (u * 7919 + y * 104729 + u * u * 31 + u * y * 17) % 251
                }
        }' >"$scratch/eye$eye.pgm"
    done
}

matches_stills() {
    still_pair
    inside ./stereod match eye0.pgm eye1.pgm -o still-arm64.png --verify --engine cpu --disparities 32 &&
        (cd "$scratch" && "$native" match eye0.pgm eye1.pgm -o still-x86-64.png --engine cpu --disparities 32) &&
        cmp "$scratch"/still-{arm64,x86-64}.png
}

# A video whose two views are the same image, 8 pixels apart, read again and recorded.
replays() {
    (cd "$scratch" && "$native" run --demo --demo-size 320x240 --frames 12 --headless --engine cpu \
        --preview demo.mp4) || return 1
    local read='filesrc location=demo.mp4 ! qtdemux ! h264parse ! avdec_h264 ! videocrop'
    same replay --left "$read right=8" --right "$read left=8" --record replay.mkv --preview replay.mp4 \
        --stats replay.json || return 1
    grep -oE '"recorded": ?12,' "$scratch/replay.json"
}

benches() {
    local simd
    for simd in neon portable; do
        inside ./stereod bench --engine cpu --size 160x120 --disparities 40 --repeat 1 --verify \
            --set engine.simd=$simd || return 1
    done
}

check "build of the tests" cross cargo test --no-run --release --locked --target $target --lib --bins \
    --test engine_parity
if [[ -z $native ]]; then
    check "build for this machine" cargo build --release --locked
    native=$made/release/stereod
fi
check "vectors, CPU engine and networks, unit tests" \
    cross cargo test --release --locked --target $target --lib -- engine::cpu engine::learned
check "every engine as the reference" \
    cross cargo test --release --locked --target $target --test engine_parity

mkdir "$scratch/home"
cp "$made/$target/release/stereod" "$scratch/" || exit 1
check "the program runs" inside ./stereod --version
check "a still pair" matches_stills
check "demo scene" same demo --demo --frames 3 --confidence demo.mkv
check "demo scene, every cost" same_for_each_cost
check "demo scene, paths" same_for_paths
check "replay with a recording" replays
check "bench" benches
if [[ ${#data[@]} -gt 0 ]]; then
    cp "${data[0]}" "$scratch/left.${data[0]##*.}"
    cp "${data[1]}" "$scratch/right.${data[1]##*.}"
    check "real video" same video --left "left.${data[0]##*.}" --right "right.${data[1]##*.}" --frames 5
else
    skip "real video" "none was named (--data LEFT RIGHT)"
fi
skip "window, CUDA engine, cameras" "nothing of that is emulated"
skip "other tests" "many of them bound times, which says nothing here"
skip "speed" "an emulator's is not a processor's (docs/performance.md counts instructions)"

summarise
conclude
