"""Scripts for SLURM: what they may contain, and their bodies run on this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from killing import ROOT, small_corpus
from pydantic import ValidationError
from tiny_models import save

from probes.common.errors import UserError
from probes.common.wording import first_fault
from probes.engines.slurm import Slurm, script, submit
from probes.engines.sweep_file import read_sweep

OPTIONS = {
    "partition": "gpu,gpu-long",
    "constraint": "[a100|h100]&nvlink",
    "time": 90,
    "gpus_per_node": "a100:4",
    "cpus_per_task": 16,
    "setup": "module load cuda/12.4\nexport HF_HOME=/scratch/models\n",
    "extra": ["--exclusive", "--output=logs/%j.out"],
}


@pytest.mark.parametrize("options", [{}, {**OPTIONS, "nodes": 4}, {**OPTIONS, "ray": False}])
def test_shellcheck_finds_nothing(options):
    shellcheck = shutil.which("shellcheck", path=Path(sys.executable).parent)
    text = script(
        Path("it's a sweep; x.toml"), Slurm(**options), ["a", "b c"], ["--output", "'; d"]
    )
    found = subprocess.run([shellcheck, "-"], input=text, capture_output=True, text=True)
    assert (found.stdout, found.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"nodes": 4}, ["--nodes=4", "--no-kill"]),
        ({"ray": False}, ["--nodes=1", "--array=0-1"]),
    ],
)
def test_directives(own, said):
    lines = script(Path("a b.toml"), Slurm(**OPTIONS, **own), ["m", "n"]).splitlines()
    assert [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")] == [
        "--job-name=probes-a-b",
        said[0],
        "--ntasks-per-node=1",
        "--signal=B:TERM@120",
        said[1],
        "--partition=gpu,gpu-long",
        "--constraint='[a100|h100]&nvlink'",
        "--gpus-per-node=a100:4",
        "--time=90",
        "--cpus-per-task=16",
        "--exclusive",
        "--output=logs/%j.out",
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"partition": "a b"}, "give names of partitions separated by commas"),
        ({"account": "$(id)"}, "give the name of an account"),
        ({"qos": "a\ntouch injected"}, "give the name of a quality of service"),
        ({"constraint": "1#x"}, "give features of nodes, such as a100|h100"),
        ({"mem": "4 --uid=root"}, "give memory per node, such as 64G"),
        ({"time": "1;id"}, "give minutes, hours:minutes:seconds or days-hours"),
        ({"gpus_per_node": ""}, "give a number, with or without a type: a100:4"),
        ({"nodes": 0}, "give a number of at least 1"),
        ({"ray": False, "nodes": 2}, "with ray = false each model takes one node; leave it out"),
        ({"extra": ["touch injected"]}, "touch injected is not one long option of sbatch"),
        ({"extra": ["--comment=\u202e"]}, "is not one long option of sbatch"),
        ({"extra": ["--mem=3G"]}, "--mem has a key of its own, mem"),
        ({"extra": ["--array=1-3"]}, "--array cannot be used here; leave it out"),
    ],
)
def test_values_that_are_refused(options, why):
    with pytest.raises(ValidationError) as refused:
        Slurm(**options)
    assert why in first_fault(refused.value)[2]


def test_what_sbatch_refuses(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^--engine slurm: there is no sbatch here; .* --dry-run"):
        submit("#!/bin/bash\n")
    (tmp_path / "sbatch").write_text("#!/bin/bash\necho 'invalid partition' >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    with pytest.raises(UserError, match=r"sbatch refuses the job \(invalid partition\); correct"):
        submit("#!/bin/bash\n")


MODELS = ["one", "t w o $(touch injected)"]
SWEEP = f"""
models = {MODELS}
output = "out"
[defaults]
tasks = "pos"
probes = "linear"
evidence = "none"
threads = 1
device = "cpu"
twins = 0
[[runs]]
corpora = ["./small"]
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts the script of a sweep in a folder that has all it needs, with `srun` as a stub."""
    monkeypatch.chdir(tmp_path)
    small_corpus(tmp_path / "small")
    for family, name in zip(("roberta", "gpt2"), MODELS, strict=True):
        save(family, tmp_path / name)
    Path("s.toml").write_text(SWEEP)
    Path("srun").write_text('#!/bin/bash\nwhile [ "$1" != bash ]; do shift; done\n"$@"\n')
    Path("srun").chmod(0o755)

    def start(slurm, *before, **environment):
        Path("job.sh").write_text(
            script(Path("s.toml"), slurm, MODELS, ["--cache-dir", "a 'b'; c"])
        )
        return subprocess.Popen(
            [*before, "bash", "job.sh"],
            env={
                **os.environ,
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def require_done(*jobs):
    """Wait until jobs end, and look into the folder that they share."""
    for job in jobs:
        said, _ = job.communicate(timeout=300)
        assert job.returncode == 0, said
    assert sorted(pd.read_csv("out/leaderboard.csv").model.unique()) == MODELS
    assert Path("a 'b'; c").is_dir()
    assert not Path("injected").exists()


@pytest.mark.integration
def test_the_tasks_of_an_array_share_their_results(start):
    tasks = [start(Slurm(ray=False), SLURM_ARRAY_TASK_ID=number) for number in "01"]
    require_done(*tasks)


@pytest.mark.integration
def test_a_job_runs_the_sweep_on_ray(start, ray_here):
    # `ray symmetric-run` refuses to start beside another Ray, and ends all that it finds.
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"]).returncode:
        pytest.skip("processes cannot be hidden from each other here")
    require_done(start(Slurm(), *alone, SLURM_JOB_NUM_NODES="1", SLURM_CPUS_ON_NODE="1"))


@pytest.mark.integration
def test_the_part_of_one_model(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'models = ["a", "b"]\n[[runs]]\ncorpora = "sample"\n[[runs]]\ncorpora = "sample"\n'
        'measurements = "geometry"\n[[runs]]\ncorpora = "sample"\nmodels = "c"\n'
    )
    sweep = read_sweep(path, {})
    assert [run.models for run in sweep.of_model("b").runs] == [("b",), ("a", "b")]
    with pytest.raises(UserError, match=r"^--model d: no run of this file has it\. Known: a, b, c"):
        sweep.of_model("d")
