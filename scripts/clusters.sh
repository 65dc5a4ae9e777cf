#!/bin/bash
# Runs batches on real schedulers: GNU parallel, a Slurm on this machine alone, Ray, and checks the manifest for
# Kubernetes. Needs root, Debian's slurm-wlm, munge and parallel, and PyPI. Not part of scripts/test.sh. PAIRS=2000 sets the
# number of pairs, STEREOD_TEST_PROGRAM the program. Arguments choose the checks: shards, kills, full, parallel, slurm,
# ray, kubernetes.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
stereod=$(realpath "${STEREOD_TEST_PROGRAM:-$target/debug/stereod}")
checks=${*:-shards kills full parallel slurm ray kubernetes}
pairs=${PAIRS:-2000}
work=$(mktemp -d "${TMPDIR:-/tmp}/stereod-clusters.XXXXXX")
daemons=()
finish() {
    [ ${#daemons[@]} -eq 0 ] || kill "${daemons[@]}" 2>/dev/null || true
    mountpoint -q "$work/small" 2>/dev/null && umount "$work/small"
    rm -rf "$work"
}
trap finish EXIT
mkdir "$work/bin" "$work/in"
ln -s "$stereod" "$work/bin/stereod"
export PATH="$work/bin:$PATH"
cd "$work"

# Two recordings of the demo scene, the second one a tenth as long.
record() {
    stereod run --demo --demo-size 96x64 --seed "$2" --frames "$3" --headless -q -d 16 --preset fast \
        --focal 100 --baseline 0.1 --mcap left,right --record "in/$1.mcap"
}
record long 1 "$pairs"
record short 2 $((pairs / 10))
options=(-d 16 --preset fast --piece 32 --threads 1 --engine cpu --write 'record,confidence,pictures'
    --left-topic /left/image_rect --right-topic /right/image_rect)

# The outputs alone: statistics and manifests hold times.
sums() { (cd "$1" && find . \( -name '*.mkv' -o -name '*.png' \) -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
whole() {
    stereod batch missing "$1" | grep . && { echo "clusters.sh: $1 is not complete" >&2; exit 1; }
    stereod batch verify "$1"
    [ "$(sums "$1")" = "$expected" ] || { echo "clusters.sh: $1 has other bytes" >&2; exit 1; }
}

echo "== one shard, $pairs pairs"
time stereod batch in --out one "${options[@]}"
expected=$(sums one)
time stereod batch in --out one "${options[@]}"

shards() {
    for count in 7 64; do
        for shard in $(seq "$count"); do
            stereod batch in --out "of$count" "${options[@]}" --shard "$shard/$count" -q
        done
        whole "of$count"
    done
    # One list of hashes is what other programs read.
    command -v b3sum >/dev/null && (cd one/long.00000000 && b3sum --check --quiet B3SUMS)
    stereod batch merge of64 -o joined
    stereod run in/long.mcap --headless -q "${options[@]:0:4}" --threads 1 --engine cpu --pictures run/pictures \
        "${options[@]: -4}"
    diff -rq -x .stereod-files run/pictures joined/long/pictures
}

kills() {
    for _ in $(seq 12); do
        stereod batch in --out killed "${options[@]}" -q & worker=$!
        sleep "0.$((RANDOM % 9))$((RANDOM % 10))"
        kill -9 "$worker" 2>/dev/null || true
        wait "$worker" 2>/dev/null || true
    done
    # Two workers of one shard, of which one waits for nothing.
    stereod batch in --out killed "${options[@]}" -q & first=$!
    stereod batch in --out killed "${options[@]}" -q && second=0 || second=$?
    wait "$first" && first=0 || first=$?
    echo "two workers: $first $second"
    stereod batch in --out killed "${options[@]}"
    whole killed
}

full() {
    mkdir small
    mount -t tmpfs -o size=600k tmpfs small
    stereod batch in --out small/out "${options[@]}" && status=0 || status=$?
    echo "full disk: status $status"
    [ "$status" = 1 ]
    mount -o remount,size=1g small
    stereod batch in --out small/out "${options[@]}"
    whole small/out
    umount small
}

parallel() {
    command parallel --will-cite -j2 --retries 3 --joblog parallel.log \
        stereod batch in --out parallel "${options[@]}" -q --shard "{}/8" ::: $(seq 8)
    whole parallel
}

slurm() {
    mkdir -p slurm/state slurm/spool
    chmod 755 "$work"
    (umask 077 && dd if=/dev/urandom of=slurm/munge.key bs=1 count=1024 status=none)
    munged --foreground --force --key-file "$work/slurm/munge.key" --socket "$work/slurm/munge" \
        --pid-file "$work/slurm/munge.pid" --log-file "$work/slurm/munge.log" --seed-file "$work/slurm/seed" &
    daemons+=($!)
    host=$(hostname -s)
    cat >slurm/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/slurm/munge
CredType=cred/munge
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/spool
SlurmctldPidFile=$work/slurm/slurmctld.pid
SlurmdPidFile=$work/slurm/slurmd.pid
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    echo 'CgroupPlugin=cgroup/v1' >slurm/cgroup.conf
    export SLURM_CONF="$work/slurm/slurm.conf"
    slurmctld -D >slurm/slurmctld.log 2>&1 & daemons+=($!)
    slurmd -D >slurm/slurmd.log 2>&1 & daemons+=($!)
    for _ in $(seq 60); do
        sinfo -h -o %T 2>/dev/null | grep -q idle && break
        sleep 1
    done
    script=$root/config/clusters/slurm.sbatch
    sbatch --wait --cpus-per-task=1 --array=1-8 "$script" in "$work/slurm-out" "${options[@]}"
    # Two shards lose a piece and are started again alone.
    rm -r slurm-out/long.00000000 slurm-out/short.00000000
    missing=$(stereod batch missing slurm-out)
    echo "missing: $missing"
    sbatch --wait --cpus-per-task=1 --array="$missing" "$script" in "$work/slurm-out" "${options[@]}"
    tail -n 1 stereod-*.log
    whole slurm-out
}

python() {
    tools=$target/cluster-tools
    [ -x "$tools/bin/python" ] || "$("$root/scripts/python.sh" venv ensurepip)" -m venv "$tools"
    "$tools/bin/python" -c "import $1" 2>/dev/null || "$tools/bin/pip" install -q "$2"
}

ray() {
    python ray ray
    "$tools/bin/python" "$root/config/clusters/ray_batch.py" 8 "$work/in" "$work/ray" "${options[@]}"
    whole ray
}

kubernetes() {
    python kubernetes_validate kubernetes-validate
    "$tools/bin/kubernetes-validate" --strict "$root/config/clusters/kubernetes.yaml"
    # As a pod calls it, with fewer shards.
    for index in $(seq 0 7); do
        JOB_COMPLETION_INDEX=$index stereod batch in --out kubernetes "${options[@]}" -q --shard auto/8
    done
    whole kubernetes
}

for check in $checks; do
    echo "== $check"
    $check
done
echo "all well"
