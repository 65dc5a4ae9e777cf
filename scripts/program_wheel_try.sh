#!/usr/bin/env bash
# Runs in the bare Debian of `program_wheel.sh --try`: installs the wheel in /opt and uses it.
set -euo pipefail
cd /tmp

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >said 2>&1; then
        echo "ok      $what"
    else
        echo "FAILED  $what ($*):"
        cat said
        exit 1
    fi
}

sed -n 's/^PRETTY_NAME=/try     /p' /etc/os-release
started=$(date +%s%N)
check "installs" sh -c 'python3 -m venv environment && environment/bin/pip install --no-index /opt/stereod_program-*.whl'
PATH=$PWD/environment/bin:$PATH
stereod run --demo --serve 127.0.0.1:8080 --headless >page 2>&1 &
program=$!
check "the page shows depth" python3 - <<'END'
import time, urllib.error, urllib.request
for attempt in range(6000):
    try:
        assert urllib.request.urlopen("http://127.0.0.1:8080/snapshot/depth.png").read().startswith(b"\x89PNG")
        break
    except urllib.error.URLError:
        time.sleep(0.1)
else:
    raise SystemExit(open("page").read())
END
echo "        $((($(date +%s%N) - started) / 1000000)) ms after pip began"
kill "$program"
wait "$program" || true
check "records and previews" stereod run --demo --frames 20 --headless --record try.mcap --preview try.mp4 --stats try.json
check "all of it" grep -qE '"recorded": ?20,' try.json
check "reads its preview" stereod run --side-by-side try.mp4 --headless --pictures pictures --stats again.json
check "every frame" grep -qE '"matched": ?20,' again.json
check "a missing encoder has a cure that works here" sh -c '! stereod run --demo --headless --record try.mkv 2>refusal &&
    grep "unlike to .mcap, needs .*brings its own" refusal'
check "is removed" environment/bin/pip uninstall --yes stereod-program
