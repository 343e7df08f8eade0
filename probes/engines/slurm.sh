#!/bin/bash
{% for directive in directives %}
#SBATCH {{ directive }}
{% endfor %}
set -eo pipefail
{% if setup %}
{{ setup }}
{% endif %}
{% if models %}

# One model of the sweep in each task; all tasks write to the same folder.
models=(
{% for model in models %}
    {{ model }}
{% endfor %}
)
exec {{ command }} --engine local --model "${models[SLURM_ARRAY_TASK_ID]}"
{% else %}
set -u
python={{ python }}
PATH=$(dirname "$(command -v "$python")"):$PATH # where its command `ray` is

# Where Ray's head listens: this node, as the last one sees it (nothing is sent), and a free port.
last=127.0.0.1
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    last=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -n 1)
else
    export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 # on Linux too, Ray then listens on loopback alone
fi
read -r head RAY_AUTH_TOKEN < <("$python" - "$last" <<'PYTHON'
import secrets, socket, sys
with socket.socket(type=socket.SOCK_DGRAM) as route, socket.socket() as free:
    route.connect((sys.argv[1], 9))
    free.bind(("", 0))
    print(f"{route.getsockname()[0]}:{free.getsockname()[1]}", secrets.token_hex(32))
PYTHON
)
# Whoever reaches a port needs the token; nothing is reported to Ray's authors.
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300

# SIGTERM is for the sweep, which stops as after Ctrl-C; Ray ends when the sweep has.
pid=$(mktemp)
trap 'rm "$pid"' EXIT
trap 'kill "$(< "$pid")"' TERM

# shellcheck disable=SC2016
srun --export=ALL --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
    --cpus-per-task="${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}" \
    --no-kill --kill-on-bad-exit=0 --wait=0 bash -c '
        RAY_TMPDIR=$(mktemp -d /tmp/ray-XXXXXXXX) # for this user alone, which /tmp/ray is not
        export RAY_TMPDIR
        trap "rm -rf $RAY_TMPDIR" EXIT
        ray symmetric-run --num-cpus="${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}" \
            --num-gpus="${SLURM_GPUS_ON_NODE:-0}" --temp-dir="$RAY_TMPDIR/ray" "$@"' \
    ray --address "$head" --min-nodes "$SLURM_JOB_NUM_NODES" -- \
    bash -c 'echo $$ > "$0"; exec "$@"' "$pid" \
    {{ command }} --engine ray --address "$head" &
wait $! || wait $! # a signal ends the first one early
[ -s "$pid" ]      # or Ray has not started, for which `ray symmetric-run` has no exit status
{% endif %}
