#!/bin/sh
# Tests the live page, and its messages with other programs, of the program in STEREOD_TEST_PROGRAM in headless Chromium. Exits with 77 if Chromium
# or Playwright is missing. With STEREOD_TEST_PAGE=1 the checkout's page.* and page/*.js take the
# place of the program's. STEREOD_TEST_STALL_S=60 lets a client stall for that many seconds.
set -eu
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/browser-tools
STEREOD_TEST_PROGRAM=$(realpath "${STEREOD_TEST_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/stereod}")
if [ ! -x "$STEREOD_TEST_PROGRAM" ]; then
    echo "browser.sh: $STEREOD_TEST_PROGRAM is missing; build it, or set STEREOD_TEST_PROGRAM" >&2
    exit 1
fi
STEREOD_CHROMIUM=${STEREOD_CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$STEREOD_CHROMIUM" ]; then
    echo "browser.sh: no Chromium; apt-get install chromium, or set STEREOD_CHROMIUM" >&2
    exit 77
fi
scripts/test_tools.sh || exit 77
modules=$(realpath "$tools")/node/node_modules
if [ -d "$modules/ws" ] || npm install --silent --prefix "$tools/node" @foxglove/ws-protocol@0 @foxglove/rosmsg@5 \
    @foxglove/rosmsg2-serialization@3 ws@8 >/dev/null 2>&1; then
    export STEREOD_NODE_MODULES="$modules"
fi
# Proxies from Debian, unpacked only, because installing one starts a server.
for program in nginx caddy; do
    if ! PATH=$PATH:/usr/sbin command -v "$program" >/dev/null && [ ! -e "$tools/proxies/$program" ] && mkdir -p "$tools/proxies"; then
        (cd "$tools/proxies" && apt-get download "$program" && dpkg -x "$program"_*.deb . && : >"$program") >/dev/null 2>&1 || true
    fi
done
PATH=$PATH:$(realpath "$tools")/proxies/usr/bin:$(realpath "$tools")/proxies/usr/sbin:/usr/sbin
export PATH
export STEREOD_TEST_PROGRAM STEREOD_CHROMIUM
exec "$tools/bin/python" -m pytest -p no:cacheprovider -ra tests/browser "$@"
