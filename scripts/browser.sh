#!/bin/sh
# Tests the live page in headless Chromium. Without STEREOD_TEST_PROGRAM only a mock of the server is
# tested. Exits with 77 if Chromium or Playwright is missing.
set -eu
cd "$(dirname "$0")/.."
tools=target/browser-tools
chromium=${STEREOD_CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$chromium" ]; then
    echo "browser.sh: no Chromium; apt-get install chromium, or set STEREOD_CHROMIUM" >&2
    exit 77
fi
if ! "$tools/bin/python" -c "import aiohttp, numpy, PIL, playwright, pytest" 2>/dev/null; then
    if ! { python3 -m venv "$tools" && "$tools/bin/pip" install -q playwright pytest aiohttp numpy pillow; }; then
        echo "browser.sh: Playwright is missing; it needs python3-venv and access to PyPI" >&2
        exit 77
    fi
fi
[ -n "${STEREOD_TEST_PROGRAM:-}" ] || echo "browser.sh: STEREOD_TEST_PROGRAM is not set; the tests of the program are skipped" >&2
STEREOD_CHROMIUM=$chromium exec "$tools/bin/python" -m pytest -p no:cacheprovider -ra tests/browser "$@"
