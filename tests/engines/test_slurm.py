"""Scripts for SLURM: what they may contain, and one that is run with local processes as nodes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import ValidationError
from ray_here import require_ray

from probes.common.errors import UserError
from probes.common.wording import first_fault
from probes.engines.slurm import Slurm, script, submit

pytestmark = pytest.mark.integration

ALL = {
    "partition": "gpu,gpu-long",
    "account": "lab@uni",
    "qos": "normal",
    "constraint": "[a100|h100]&nvlink",
    "time": "1-12:30:00",
    "nodes": 4,
    "gpus_per_node": "a100:4",
    "cpus_per_task": 16,
    "mem": "64G",
    "python": "/opt/my env/bin/python",
    "setup": "module load cuda/12.4\nexport HF_HOME=/scratch/models\n",
    "extra": ["--exclusive", "--output=logs/%j.out"],
}
NAME = "it's a $(touch injected);\n`sweep`.toml"

fakes = {
    "sbatch": """\
cat > job.sh
SLURM_JOB_NUM_NODES=$(sed -n 's/^#SBATCH --nodes=//p' job.sh)
export SLURM_JOB_NUM_NODES SLURM_JOB_ID=17 SLURM_JOB_NODELIST='127.0.0.[1-2]'
export SLURMD_NODENAME=127.0.0.1 SLURM_CPUS_ON_NODE=1 SLURM_CPUS_PER_TASK=1
# A session of its own, by which its processes are known; and what Bash starts in the background
# ignores SIGINT, which jobs do not.
job='import os, signal; os.setsid(); signal.signal(2, signal.SIG_DFL); os.execlp("bash", "bash", "job.sh")'
("$REAL_PYTHON" -c "$job" > job.log 2>&1 & echo $! > pid; wait $!; echo $? > status.part; mv status.part status) > /dev/null 2>&1 &
echo '17;cluster'
""",
    "scontrol": """\
[ "$*" = 'show hostnames 127.0.0.[1-2]' ] && printf '127.0.0.1\\n127.0.0.2\\n'
""",
    "mktemp": """\
PATH=${PATH#*:} mktemp "$@" | tee -a folders
""",
    "srun": """\
while [ "$1" != bash ]; do shift; done
for node in $(seq -f 127.0.0.%.0f "$SLURM_JOB_NUM_NODES"); do
    SLURMD_NODENAME=$node "$@" &
    tasks+=("$!")
done
trap 'kill "${tasks[@]}"' TERM
wait
wait
""",
    # In place of the interpreter: everything but the sweep is real.
    "python": """\
if [ "$1 $2" = '-m probes' ]; then shift 2; exec "$REAL_PYTHON" "$SWEEP" "$@"; fi
exec "$REAL_PYTHON" "$@"
""",
}

SWEEP = """\
import json, os, subprocess, sys, time
import ray
ray.init(sys.argv[-1], logging_level="error", log_to_driver=False)
there = {
    "arguments": sys.argv[1:-1],
    "nodes": sum(node["Alive"] for node in ray.nodes()),
    "cores": ray.cluster_resources()["CPU"],
    "usage": os.environ["RAY_USAGE_STATS_ENABLED"],
}
if "--refused" in sys.argv:
    ask = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1]).get_all_node_info(timeout=9)"
    tokens = (os.environ["RAY_AUTH_TOKEN"], "0" * 64)
    asked = [
        subprocess.run([sys.executable, "-c", ask, sys.argv[-1]], env={**os.environ, "RAY_AUTH_TOKEN": token}, capture_output=True, text=True)
        for token in tokens
    ]
    there["refused"] = ["AuthenticationError" in each.stderr for each in asked]
with open("there.part", "w") as file:
    json.dump(there, file)
os.rename("there.part", "there.json")
try:
    time.sleep(600 if "--sleep" in sys.argv else 0)
except KeyboardInterrupt:
    print("stopped as by Ctrl-C")
    sys.exit(130)
sys.exit(3)
"""


@pytest.mark.parametrize("options", [{}, {"nodes": 2, "time": 90, "gpus_per_node": 2}, ALL])
def test_shellcheck_finds_nothing(options, tmp_path):
    shellcheck = shutil.which("shellcheck", path=Path(sys.executable).parent)
    text = script(tmp_path / NAME, Slurm(**options), ["--output", "a 'b'; $c"])
    # SC2016 notes that `$` and backquotes do nothing in single quotes, which is what they are for.
    command = [shellcheck, "--exclude=SC2016", "-"]
    found = subprocess.run(command, input=text, capture_output=True, text=True)
    assert (found.stdout, found.returncode) == ("", 0)


def test_directives():
    assert [line for line in script(Path("x.toml"), Slurm(**ALL)).splitlines() if line[:1] == "#"][
        1:15
    ] == [
        "#SBATCH --job-name=probes-x",
        "#SBATCH --nodes=4",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --no-kill",
        "#SBATCH --signal=B:TERM@120",
        "#SBATCH --partition=gpu,gpu-long",
        "#SBATCH --account=lab@uni",
        "#SBATCH --qos=normal",
        "#SBATCH --constraint='[a100|h100]&nvlink'",
        "#SBATCH --gpus-per-node=a100:4",
        "#SBATCH --mem=64G",
        "#SBATCH --time=1-12:30:00",
        "#SBATCH --cpus-per-task=16",
        "#SBATCH --exclusive",
    ]


@pytest.mark.parametrize(
    "field", ["partition", "account", "qos", "constraint", "mem", "time", "gpus_per_node"]
)
@pytest.mark.parametrize(
    "value", ["a\ntouch injected", "4\n", "", "1 --uid=root", "$(id)", "`id`", "1;id", "'1", '"', "1>x", "1#x", "\u202e1"]
)  # fmt: skip
def test_values_that_would_be_read_otherwise_are_refused(field, value):
    with pytest.raises(ValidationError) as refused:
        Slurm(**{field: value})
    name, given, why = first_fault(refused.value)
    assert (name, given) == (field, value)
    assert why.startswith("give ")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"extra": ["--comment=x\ntouch injected"]}, "has unprintable characters"),
        ({"extra": ["touch injected"]}, "is not one long option"),
        ({"extra": ["--exclusive --array=1-3"]}, "is not one long option"),
        ({"extra": ["-N 3"]}, "is not one long option"),
        ({"extra": ["--mem=3G"]}, "--mem has a key of its own, mem"),
        ({"extra": ["--gpus-per-node=3"]}, "--gpus-per-node has a key of its own, gpus_per_node"),
        ({"extra": ["--array=1-3"]}, "--array cannot be used here"),
        ({"setup": ["a\nb"]}, "has unprintable characters"),
        ({"python": "python\nid"}, "give the path of an interpreter"),
        ({"nodes": 0}, "give a number of at least 1"),
        ({"partitions": "gpu"}, "there is no such field"),
    ],
)
def test_options_that_are_refused(options, why):
    with pytest.raises(ValidationError) as refused:
        Slurm(**options)
    assert why in first_fault(refused.value)[2]


def test_a_script_runs_what_it_was_given_and_nothing_else(cluster, tmp_path):
    # The name, the interpreter's path and the arguments are full of what Bash would interpret.
    python = tmp_path / "bin $(touch injected); 'x'"
    shutil.copy(tmp_path / "bin" / "python", python)
    text = script(Path(NAME), Slurm(python=str(python)), ["--output", "$(touch injected)"])
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    last = text.splitlines()[:-2]
    start = max(n for n, line in enumerate(last) if line.startswith("PYTHON")) + 1
    command = "\n".join(last[start:]).removesuffix(" &")
    (tmp_path / "echo.py").write_text("import json, sys; print(json.dumps(sys.argv[1:]))")
    said = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "address": "h:1", "SWEEP": str(tmp_path / "echo.py")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout) == [
        "sweep",
        str(tmp_path / NAME),
        "--output",
        "$(touch injected)",
        "--engine",
        "ray",
        "--address",
        "h:1",
    ]
    assert not (tmp_path / "injected").exists()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A folder with commands of SLURM that take this machine for two nodes."""
    (tmp_path / "bin").mkdir()
    for name, text in fakes.items():
        (tmp_path / "bin" / name).write_text("#!/bin/bash\n" + text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "sweep.py").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("REAL_PYTHON", sys.executable)
    monkeypatch.setenv("SWEEP", str(tmp_path / "sweep.py"))
    for name in [name for name in os.environ if name.startswith(("RAY_", "SLURM"))]:
        monkeypatch.delenv(name)
    yield tmp_path
    if (tmp_path / "pid").exists():
        for process in of_job(tmp_path):
            process.kill()


def of_job(folder):
    """The processes of the job of this folder that are there."""
    import psutil

    session = int(awaited(folder / "pid"))
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def awaited(path, seconds=90):
    """What a file says as soon as it is there."""
    end = time.monotonic() + seconds
    while not path.exists():
        log = path.with_name("job.log")
        assert time.monotonic() < end, log.read_text() if log.exists() else path
        time.sleep(0.1)
    return path.read_text()


def start(folder, nodes, *arguments):
    """Submit a sweep; the job's number."""
    slurm = Slurm(python=str(folder / "bin" / "python"), nodes=nodes)
    return submit(script(Path("s.toml"), slurm, arguments))


needs_processes = pytest.mark.skipif(sys.platform != "linux", reason="SLURM runs on Linux")


@needs_processes
def test_a_job_runs_the_sweep_on_all_nodes_and_leaves_nothing(cluster):
    require_ray()
    assert start(cluster, 2, "--refused") == "17"
    assert awaited(cluster / "status") == "3\n", (cluster / "job.log").read_text()
    assert json.loads((cluster / "there.json").read_text()) == {
        "arguments": [
            "sweep",
            str(cluster / "s.toml"),
            "--refused",
            "--engine",
            "ray",
            "--address",
        ],
        "nodes": 2,
        "cores": 2.0,
        "usage": "0",
        "refused": [False, True],
    }
    assert (cluster / "job.log").read_text() == ""
    assert of_job(cluster) == []
    folders = (cluster / "folders").read_text().split()
    assert [Path(folder).exists() for folder in folders] == [False, False]


@needs_processes
def test_a_job_of_one_node_listens_on_loopback_and_stops_when_it_is_told_to(cluster):
    require_ray()
    start(cluster, 1, "--sleep")
    assert json.loads(awaited(cluster / "there.json"))["nodes"] == 1
    connections = [each for process in of_job(cluster) for each in process.net_connections("tcp")]
    listening = {each.laddr.ip for each in connections if each.status == "LISTEN"}
    assert listening == {"127.0.0.1", "::ffff:127.0.0.1"}
    (folder,) = (cluster / "folders").read_text().split()
    assert (list(Path(folder).glob("r/session_*")) != [], Path(folder).stat().st_mode & 0o777) == (
        True,
        0o700,
    )
    os.kill(int(awaited(cluster / "pid")), signal.SIGTERM)
    assert awaited(cluster / "status") == "143\n", (cluster / "job.log").read_text()
    assert "stopped as by Ctrl-C" in (cluster / "job.log").read_text()
    assert of_job(cluster) == []


@needs_processes
def test_a_job_without_ray_says_so(cluster):
    (cluster / "bin" / "srun").write_text("#!/bin/bash\necho 'srun: no' >&2\nexit 1\n")
    start(cluster, 1)
    assert awaited(cluster / "status") == "1\n"
    assert (cluster / "job.log").read_text().splitlines() == [
        "srun: no",
        "error: Ray has not started on 127.0.0.1; see above.",
    ]


def test_no_sbatch(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^--engine slurm: there is no sbatch here; .* --dry-run"):
        submit("#!/bin/bash\n")


def test_a_refused_script(cluster):
    (cluster / "bin" / "sbatch").write_text(
        "#!/bin/bash\necho 'sbatch: error: invalid partition: gpu' >&2\nexit 1\n"
    )
    with pytest.raises(UserError) as refused:
        submit("#!/bin/bash\n")
    assert str(refused.value) == (
        "--engine slurm: sbatch refuses the job (sbatch: error: invalid partition: gpu); "
        "correct [slurm]."
    )
