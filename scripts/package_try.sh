#!/usr/bin/env bash
# Runs in the bare Debian of `package.sh --try`: installs /opt/stereod.deb, uses it, purges it.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >/tmp/said 2>&1; then
        echo "ok      $what"
    else
        echo "FAILED  $what ($*):"
        cat /tmp/said
        exit 1
    fi
}
fails_with() { # STATUS COMMAND...
    local expected=$1 status=0
    shift
    "$@" || status=$?
    [[ $status == "$expected" ]]
}

check "installs" apt-get install -y -o APT::Install-Recommends=true /opt/stereod.deb
check "the program runs" stereod --version
check "its user exists, without a login" grep '^stereod:.*nologin$' /etc/passwd
check "manual pages" test -s /usr/share/man/man1/stereod-run.1.gz
check "completions" bash -n /usr/share/bash-completion/completions/stereod
check "only the service reads the configuration" grep '^640 root:stereod$' <(stat -c '%a %U:%G' /etc/stereod/config.toml)
check "the service does" setpriv --reuid=stereod --regid=stereod --clear-groups cat /etc/stereod/config.toml
check "others do without it" setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/nonexistent stereod config check
check "the configuration is valid" stereod config check /etc/stereod/config.toml
check "the units are" systemd-analyze verify --man=no /lib/systemd/system/stereod.service /lib/systemd/system/stereod@.service
check "no unit is enabled unasked" fails_with 1 test -e /etc/systemd/system/multi-user.target.wants/stereod.service
check "devices" stereod devices
check "without a source it says so" fails_with 2 stereod run --headless
# With all that a recording and a preview need, as the service's user.
check "records" setpriv --reuid=stereod --regid=stereod --clear-groups env HOME=/tmp sh -c \
    'cd /tmp && stereod run --demo --frames 20 --headless --record try.mkv --preview try.mp4 --stats try.json'
check "all of it" grep -qE '"recorded": ?20,' /tmp/try.json
echo 'rate = 15' >>/etc/stereod/config.toml
check "installs again" apt-get install -y --reinstall /opt/stereod.deb
check "changed settings stay" grep -q 'rate = 15' /etc/stereod/config.toml
check "is removed" apt-get remove -y stereod
check "settings stay" test -e /etc/stereod/config.toml
check "is purged" apt-get purge -y stereod
check "settings go" fails_with 1 test -e /etc/stereod
