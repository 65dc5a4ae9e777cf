# shellcheck shell=bash
# Runs checks, one after the other or side by side, and summarises them; sourced by test.sh and arm64.sh.

checks_began=$SECONDS
summary=()
failed=0
beside_names=() beside_pids=() beside_outputs=()

# Sets $processor to the seconds that this shell's ended children have taken of all processors.
processor=0
read_processor() {
    local file
    file=$(mktemp)
    # In a subshell it would tell of no children.
    times >"$file"
    processor=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$file")
    rm -f "$file"
}

# Runs one check; a failure does not stop the others. A check with the status 77 has said why it was skipped.
check() { # NAME COMMAND...
    local name=$1 begin=$SECONDS status=0 before
    shift
    echo
    echo "== $name: $*"
    read_processor
    before=$processor
    "$@" </dev/null || status=$?
    read_processor
    record "$name" "$status" $((SECONDS - begin)) $((processor - before))
}

record() { # NAME STATUS SECONDS PROCESSOR_SECONDS
    local result=ok
    if [[ $2 -eq 77 ]]; then
        result=skipped
    elif [[ $2 -ne 0 ]]; then
        result=FAILED
        failed=$((failed + 1))
    fi
    summary+=("$(printf '%-36s %-7s %4d s, %4d s of processors' "$1" "$result" "$3" "$4")")
}

# Begins a check that runs beside those that follow, with less right to the processor than they have.
beside() { # NAME COMMAND...
    local name=$1 output
    shift
    output=$(mktemp)
    echo
    echo "== $name begins, beside what follows: $*"
    # A process group of its own, so that all of it can be ended.
    set -m
    (
        renice -n 10 "$BASHPID" >/dev/null
        status=0 begin=$SECONDS
        "$@" </dev/null >"$output" 2>&1 || status=$?
        read_processor
        echo "$status $((SECONDS - begin)) $processor" >"$output.result"
    ) &
    set +m
    beside_names+=("$name") beside_pids+=($!) beside_outputs+=("$output")
}

# Waits for the checks that were begun beside others, and shows what each has printed.
await() {
    local i status seconds taken
    for i in "${!beside_names[@]}"; do
        wait "${beside_pids[i]}" || true
        echo
        echo "== ${beside_names[i]}"
        cat "${beside_outputs[i]}"
        # Without a result, it was killed.
        read -r status seconds taken 2>/dev/null <"${beside_outputs[i]}.result" || { status=1 seconds=0 taken=0; }
        record "${beside_names[i]}" "$status" "$seconds" "$taken"
        rm -f "${beside_outputs[i]}" "${beside_outputs[i]}.result"
    done
    beside_names=() beside_pids=() beside_outputs=()
}

# Ends what still runs beside; for a trap.
end_beside() {
    local pid
    for pid in "${beside_pids[@]}"; do kill -- "-$pid" 2>/dev/null; done
    rm -f "${beside_outputs[@]}"
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
