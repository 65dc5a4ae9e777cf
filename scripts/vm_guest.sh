# shellcheck shell=bash
# Runs in the machine of camera_vm.sh and faults_vm.sh, read by their scripts there with `.`.

# Ends the machine with status 75 if its simulated bus hangs: when a transfer is cancelled late, the
# kernel (6.1) now and then waits in usb_kill_urb for good, and nothing that waits there can be killed.
watch_bus() {
    local sightings=0
    while sleep 5; do
        if grep -qs usb_kill_urb /proc/[0-9]*/task/*/wchan; then sightings=$((sightings + 1)); else sightings=0; fi
        if [ $sightings -ge 4 ]; then
            echo "guest: the simulated bus hangs, up $(cut -d' ' -f1 /proc/uptime) s"
            sleep 1 # for this line to be out
            echo 75 >/ctl/rc
            sync
            echo b >/proc/sysrq-trigger # shutting down in order would wait for the bus
        fi
    done
}
watch_bus &
