# shellcheck shell=bash
# Functions shared by camera_vm.sh and faults_vm.sh, which source this file.

prepare_machine() { # GUEST_SCRIPT: sets $python, and $share, the folder that the machine sees as /host
    python=$(scripts/python.sh cv2 numpy)
    share=$(mktemp -d)
    trap 'rm -rf "$share"' EXIT
    mkdir "$share/out"
    strip -o "$share/stereod" "${BIN:-${CARGO_TARGET_DIR:-target}/debug/stereod}"
    cp "$1" "$share/guest.sh"
    cp scripts/vm_guest.sh "$share/"
    ended=0
}

# Boots the machine of the folder TOOLS and runs a command in it; sets $ended to its status. If the
# machine's simulated bus hung (status 75), it is booted again, and finished runs are kept.
in_machine() { # TOOLS SECONDS COMMAND
    local boots
    for boots in {1..10}; do
        ended=0
        SHARE=$share TIMEOUT=${TIMEOUT:-$2} "$1/run.sh" "$3" || ended=$?
        if [[ $ended -ne 75 ]]; then break; fi
        echo "the simulated bus of the virtual machine hung (boot $boots of 10 at most)" >&2
    done
    if [[ -n ${KEEP:-} ]]; then mkdir -p "$KEEP" && cp -r "$share/out/." "$KEEP/"; fi
}

# Checks the results of the runs and ends the script: 0 if the machine ended well and all is as expected.
conclude_machine() { # CHECK ARGUMENTS...
    local judged=0
    "$python" "$@" || judged=$?
    if [[ $ended -ne 0 ]]; then
        echo "the virtual machine ended with status $ended (124: not done in time)" >&2
        exit "$ended"
    fi
    exit "$judged"
}
