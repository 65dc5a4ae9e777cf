#!/usr/bin/env bash
# Runs in the machine of faults_vm.sh; output and exit status of each run go to /host/out.
out=/host/out
fps=${FPS:-15}
cp /host/stereod /tmp/stereod
# shellcheck disable=SC1091 # lies in the machine
. /host/vm_guest.sh

say() { echo "guest, $(cut -d. -f1 /proc/uptime) s: $*"; }
start() { # [FOLDER]: starts the cameras, with the variables of twocams
    # shellcheck disable=SC1091 # lies in the machine
    FMTS="mjpg yuyv" SIZES=320x240 FPS=$fps . twocams usb "${1:-/host/rec}" 2>/dev/null
}
end() { # ends the cameras
    kill "$CAML" "$CAMR" 2>/dev/null
    wait "$CAML" "$CAMR" 2>/dev/null
    udevadm settle
}
eye() { # DEVICE FORMAT
    case $2 in
        mjpg) echo "v4l2src device=$1 ! image/jpeg,width=320,height=240,framerate=$fps/1 ! jpegdec" ;;
        raw) echo "v4l2src device=$1 ! video/x-raw,format=YUY2,width=320,height=240,framerate=$fps/1" ;;
    esac
}
run() { # NAME FORMAT FLAGS...: starts the program
    name=$1 log=$out/$1.log
    local left right
    left=$(eye "$L" "$2") right=$(eye "$R" "$2")
    shift 2
    : >"$log"
    /tmp/stereod run --disparities 16 --cost ad --paths 4 --engine cpu --headless --stats - \
        --left "$left" --right "$right" "$@" >"$out/$name.json" 2>"$log" </dev/null &
    program=$!
    until_says 'matching on' 1
    sleep 5
}
stop() { # ends it as a service manager does
    kill -TERM "$program"
    local tries task
    for tries in $(seq 300); do
        [ -e "/proc/$program/exe" ] || break
        sleep 0.1
    done
    if [ "$tries" = 300 ]; then # where it hangs, thread by thread
        for task in /proc/"$program"/task/*; do
            echo "$(cat "$task/comm"): $(grep State "$task/status") in $(cat "$task/wchan")"
            cat "$task/stack"
        done >"$out/$name.hangs" 2>&1
        kill -KILL "$program"
        say "$name hangs: $(tr '\n' ' ' <"$out/$name.hangs")"
        echo hangs >"$out/$name.rc"
        return
    fi
    wait "$program"
    echo $? >"$out/$name.rc"
    say "$name: $(cat "$out/$name.rc")"
}
by_path() { # the name of a camera by its port
    find /dev/v4l/by-path -lname "*/$(basename "$(readlink -f "$1")")" | head -1
}
says() { grep -c -e "$1" "$log"; }
until_says() { # TEXT TIMES
    local tries
    for tries in $(seq 600); do
        [ "$(says "$1")" -ge "$2" ] && return
        sleep 0.1
    done
    echo "waited in vain for $2 times: $1 ($tries tries)" | tee -a "$log"
}
measure() { # memory in KiB, threads, open files
    awk '/^VmRSS|^Threads/ {printf "%s ", $2}' /proc/"$program"/status
    find /proc/"$program"/fd | wc -l
}

unplug_in_turn() { # NUMBER: the right one, the left one, both; counts in lost
    local side=right s
    case $(($1 % 3)) in 0) side="left right" ;; 1) side=left ;; esac
    for s in $side; do echo unplug >/run/cam."$s"; lost=$((lost + 1)); done
    until_says 'camera lost' "$lost"
    sleep 1
    for s in $side; do echo plug >/run/cam."$s"; done
    until_says 'camera is back' "$lost"
}
replug() {
    start
    local record=() i lost=0
    gst-inspect-1.0 avenc_ffv1 >/dev/null 2>&1 && record=(--record "$out/replug.mkv")
    run replug mjpg "${record[@]}"
    for i in $(seq "${CYCLES:-5}"); do
        unplug_in_turn "$i"
        sleep 3
        measure >>"$out/replug.sizes"
        say "replug $i: $(tail -1 "$out/replug.sizes")"
    done
    echo $lost >"$out/replug.lost"
    find /proc/"$program"/fd -printf '%l\n' | sed 's/[0-9]*\]$/]/' | sort | uniq -c >"$out/replug.files"
    stop
    end
}
hour() { # streaming all the while, with a camera unplugged now and then
    start
    run hour mjpg
    local begin end i=0 lost=0
    begin=$(date +%s) end=$(($(date +%s) + 60 * ${MINUTES:-60}))
    while [ "$(date +%s)" -lt "$end" ]; do
        i=$((i + 1))
        # The cycles are spread evenly over the time.
        while [ "$(date +%s)" -lt $((begin + i * 60 * ${MINUTES:-60} / (${CYCLES:-5} + 1))) ]; do sleep 1; done
        [ $i -gt "${CYCLES:-5}" ] && break
        unplug_in_turn "$i"
        sleep 5
        measure >>"$out/hour.sizes"
        [ $((i % 10)) = 0 ] && say "hour, cycle $i: $(tail -1 "$out/hour.sizes")"
    done
    echo $lost >"$out/hour.lost"
    stop
    end
}
killed() { # in the midst of a recording, for which the image needs libav
    local signal
    start
    for signal in KILL INT; do
        run "killed_$signal" mjpg --record "$out/killed_$signal.mkv" --segment 5s
        sleep 10
        kill -$signal "$program"
        wait "$program"
        echo $? >"$out/killed_$signal.rc"
    done
    end
}
ports() { # both are unplugged, and plugged into each other's port
    local left right
    start
    left=$(by_path "$L") right=$(by_path "$R")
    L=$left R=$right run ports mjpg
    end
    until_says 'camera lost' 2
    LEFT="-s R001 -n CamRight" RIGHT="-s L001 -n CamLeft" start /host/exchanged
    until_says 'camera is back' 2
    until_says 'exchanged' 1
    stop
    end
}
faults() {
    start
    run faults mjpg
    echo 'stall 5000' >/run/cam.left
    until_says 'left camera is back' 1
    sleep 3
    echo 'cut 20' >/run/cam.right
    sleep 4
    echo 'drop 20' >/run/cam.left
    sleep 4
    stop
    end
}
raw() {
    start
    run raw raw
    echo 'cut 10' >/run/cam.left
    sleep 4
    stop
    end
}
phase() {
    RIGHT="-o 33" start
    run phase mjpg
    sleep 15
    stop
    end
}
skew() {
    LEFT="-p -200 -j 500" RIGHT="-p 200 -o 5 -j 500" start
    run skew mjpg
    sleep 35
    stop
    end
}

[ $# -gt 0 ] || set -- replug faults raw phase skew ports # not the hour
# Runs that an earlier boot finished are skipped; unfinished ones restart.
for case; do
    if [ -e "$out/$case.rc" ]; then continue; fi
    rm -f "$out/$case"[._]*
    "$case"
done
true
