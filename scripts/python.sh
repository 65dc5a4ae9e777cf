#!/usr/bin/env bash
# Prints a Python 3 that has the given modules: the first on PATH if it has them, else the system's own,
# for which setup.sh installs packages, or that of test_tools.sh. Usage: python.sh MODULE...
set -euo pipefail

imports=$(printf 'import %s\n' "$@")
tools=${CARGO_TARGET_DIR:-${BASH_SOURCE[0]%/*}/../target}/browser-tools
for python in python3 /usr/bin/python3 "$tools/bin/python"; do
    if command -v "$python" >/dev/null && "$python" -c "$imports" 2>/dev/null; then
        echo "$python"
        exit
    fi
done
echo "no python3 here has the modules $*; scripts/setup.sh --tests --cameras installs them on Debian and Ubuntu" >&2
exit 1
