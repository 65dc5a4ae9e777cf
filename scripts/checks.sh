# shellcheck shell=bash
# Runs checks one after the other and summarises them; sourced by test.sh and arm64.sh.

checks_began=$SECONDS
summary=()
failed=0

# Runs one check; a failure does not stop the others. A check with the status 77 has said why it was skipped.
check() { # NAME COMMAND...
    local name=$1 begin=$SECONDS result=ok status=0
    shift
    echo
    echo "== $name: $*"
    "$@" </dev/null || status=$?
    if [[ $status -eq 77 ]]; then
        result=skipped
    elif [[ $status -ne 0 ]]; then
        result=FAILED
        failed=$((failed + 1))
    fi
    summary+=("$(printf '%-36s %-7s %4d s' "$name" "$result" $((SECONDS - begin)))")
}

skip() { # NAME REASON
    summary+=("$(printf '%-36s skipped, %s' "$1" "$2")")
}

# Prints the result of each check.
summarise() {
    echo
    echo "== summary"
    printf '%s\n' "${summary[@]}"
}

# Last command of a script, which sets its exit status: 1 if a check failed.
conclude() {
    if [[ $failed -gt 0 ]]; then
        echo "FAILED: $failed of ${#summary[@]} checks, after $((SECONDS - checks_began)) s"
        return 1
    fi
    echo "all checks passed after $((SECONDS - checks_began)) s"
}
