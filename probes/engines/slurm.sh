#!/bin/bash
{% for directive in directives %}
#SBATCH {{ directive }}
{% endfor %}
# Starts Ray on all nodes of the job, runs the sweep on it, and stops Ray again.
set -eo pipefail
{% for line in setup %}
{{ line }}
{% endfor %}
set -u
python={{ python }}
wait_seconds=300

# No usage statistics; and whoever reaches a port of this Ray needs the token to use it.
RAY_AUTH_TOKEN=$("$python" -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0

# The address of this node as the last one sees it (nothing is sent), with a free port.
if [ "$SLURM_JOB_NUM_NODES" = 1 ]; then
    last=127.0.0.1
    export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 # on Linux too, Ray then listens on loopback alone
else
    last=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -n 1)
fi
address=$("$python" - "$last" <<'PYTHON'
import socket, sys
with socket.socket(type=socket.SOCK_DGRAM) as route, socket.socket() as free:
    route.connect((sys.argv[1], 9))
    free.bind(("", 0))
    print(f"{route.getsockname()[0]}:{free.getsockname()[1]}")
PYTHON
)

head_answers() {
    (: < "/dev/tcp/${1%:*}/${1##*:}") 2> /dev/null
}

# Ray on one node, until SIGTERM. Arguments: interpreter, address and name of the head.
run_node() {
    folder=$(mktemp -d /tmp/ray-XXXXXXXX) # for this user alone, which Ray's own folder is not
    options=(--address="$2")
    if [ "$SLURMD_NODENAME" = "$3" ]; then
        options=(--head --node-ip-address="${2%:*}" --port="${2##*:}" --include-dashboard=false)
    else
        until head_answers "$2"; do sleep 1; done
    fi
    "$1" -m ray.scripts.scripts start --block --temp-dir="$folder/r" "${options[@]}" \
        --num-cpus="${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}" \
        --num-gpus="${SLURM_GPUS_ON_NODE:-0}" > "$folder/start.log" 2>&1 &
    ray=$!
    trap 'stopped=yes; kill "$ray"' TERM
    wait "$ray" || [ -n "${stopped-}" ] || cat "$folder/start.log" >&2
    wait "$ray" || true # a trap ends the first wait early
    rm -rf "$folder"
}

# Ends a process by a signal, or else in a minute. Arguments: signal, process.
end() {
    kill "-$1" "$2" 2> /dev/null || return 0
    for _ in {1..600}; do
        kill -0 "$2" 2> /dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$2" 2> /dev/null || true
}

# Whatever ends this script ends the sweep, as Ctrl-C does, and then Ray.
stop() {
    trap '' TERM INT
    [ -z "${sweep-}" ] || end INT "$sweep"
    end TERM "$cluster"
}

set -m # or commands in the background would ignore SIGINT
srun --export=ALL --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
    --cpus-per-task="${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}" \
    --no-kill --kill-on-bad-exit=0 --wait=0 \
    bash -c "$(declare -f head_answers run_node); run_node \"\$@\"" \
    run_node "$python" "$address" "$SLURMD_NODENAME" &
cluster=$!
trap stop EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

until head_answers "$address"; do
    if ! kill -0 "$cluster" 2> /dev/null || ((SECONDS > wait_seconds)); then
        echo "error: Ray has not started on $SLURMD_NODENAME; see above." >&2
        exit 1
    fi
    sleep 1
done
"$python" - "$address" "$SLURM_JOB_NUM_NODES" "$((wait_seconds - SECONDS))" <<'PYTHON'
import sys, time, ray
address, nodes, seconds = sys.argv[1], int(sys.argv[2]), time.monotonic() + int(sys.argv[3])
ray.init(address, logging_level="error", log_to_driver=False)
while (there := sum(node["Alive"] for node in ray.nodes())) < nodes:
    if time.monotonic() > seconds:
        sys.exit(f"error: {there} of {nodes} nodes have joined Ray, and no more; see above.")
    time.sleep(1)
PYTHON

{{ command }} --engine ray --address "$address" &
sweep=$!
wait "$sweep"
