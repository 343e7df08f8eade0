"""A sweep as a job of SLURM: on Ray, or as an array of tasks with one model each."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import Field, ValidationInfo, field_validator

from probes.common.errors import UserError
from probes.common.wording import quoted
from probes.records.base import Frozen

_FORMS = {
    "partition": (r"[\w.-]+(,[\w.-]+)*", "give names of partitions separated by commas"),
    "account": (r"[\w.@-]+", "give the name of an account"),
    "qos": (r"[\w.-]+", "give the name of a quality of service"),
    "constraint": (r"[\w.,:&|*@()\[\]-]+", "give features of nodes, such as a100|h100"),
    "gpus_per_node": (r"(\w[\w.-]*:)?\d{1,4}", "give a number, with or without a type: a100:4"),
    "mem": (r"\d{1,9}[KMGT]?", "give memory per node, such as 64G"),
    "time": (
        r"\d{1,7}(:\d\d?){0,2}|\d{1,4}-\d\d?(:\d\d?){0,2}",
        "give minutes, hours:minutes:seconds or days-hours, such as 12:00:00 or 2-00",
    ),
}
"""By field: the whole of a value as SLURM reads it, without blanks and quotation marks."""

_SECONDS_TO_STOP = 120
"""How long before its time is out a job is told to stop; SLURM may be a minute late."""

_NOT_EXTRA = (
    *("ntasks-per-node", "no-kill", "signal", "job-name", "array"),  # the script's own
    *("help", "ntasks", "test-only", "usage", "version", "wait", "wrap"),
)
"""Options of sbatch that the script sets itself, or with which it would not run as it has to."""


class Slurm(Frozen):
    """The table [slurm] of a sweep: what is asked of SLURM, and what comes before Python.

    Options are those of `sbatch` with the same name. What is None is left to the cluster.
    """

    ray: bool = True
    """Whether Ray divides the sweep among the nodes; otherwise each model is a task of an array."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    time: str | None = Field(default=None, coerce_numbers_to_str=True)
    """The longest that the job, or a task of the array, may take."""
    nodes: int = Field(default=1, ge=1, le=10_000)
    gpus_per_node: str | None = Field(default=None, coerce_numbers_to_str=True)
    cpus_per_task: int | None = Field(default=None, ge=1, le=10_000)
    """CPU cores of each node."""
    mem: str | None = None
    """Memory of each node."""
    python: str = Field(default=sys.executable, min_length=1)
    """The interpreter on all nodes; "python" for the one that `setup` activates."""
    setup: str = ""
    """Lines of Bash that come before anything else, on the first node or in each task."""
    extra: tuple[str, ...] = ()
    """Further options of `sbatch`, such as "--exclusive"."""

    @field_validator(*_FORMS)
    @classmethod
    def _well_formed(cls, value: str | None, field: ValidationInfo) -> str | None:
        form, remedy = _FORMS[str(field.field_name)]
        if value is not None and not re.fullmatch(form, value, re.ASCII):
            raise ValueError(remedy)
        return value

    @field_validator("nodes")
    @classmethod
    def _one_node_without_ray(cls, nodes: int, field: ValidationInfo) -> int:
        if nodes > 1 and not field.data.get("ray", True):
            raise ValueError("with ray = false each model takes one node; leave it out")
        return nodes

    @field_validator("extra")
    @classmethod
    def _other_options(cls, extra: tuple[str, ...]) -> tuple[str, ...]:
        for line in extra:
            found = re.fullmatch(r"--([a-z][a-z-]*)(=\S+)?", line)
            if found is None or not line.isprintable():
                raise ValueError(
                    f"{quoted(line)} is not one long option of sbatch, such as --exclusive or "
                    "--output=log.txt"
                )
            name = found[1]
            if name.replace("-", "_") in cls.model_fields:
                raise ValueError(f"--{name} has a key of its own, {name.replace('-', '_')}")
            if name in _NOT_EXTRA:
                raise ValueError(f"--{name} cannot be used here; leave it out")
        return extra

    def directives(self, job: str, n_models: int) -> list[str]:
        """What stands behind #SBATCH, line by line, in a job of this name."""
        asked: dict[str, object] = {
            "job-name": job,
            "nodes": self.nodes,
            "ntasks-per-node": 1,
            "signal": f"B:TERM@{_SECONDS_TO_STOP}",
        }
        if self.ray:
            asked["no-kill"] = None  # Ray does without a node that is lost
        else:
            asked["array"] = f"0-{n_models - 1}"
        for name in (*_FORMS, "cpus_per_task"):
            if (value := getattr(self, name)) is not None:
                asked[name.replace("_", "-")] = value
        return [
            f"--{name}" if value is None else f"--{name}={shlex.quote(str(value))}"
            for name, value in asked.items()
        ] + list(self.extra)


def script(
    sweep_path: Path, slurm: Slurm, models: Sequence[str], arguments: Sequence[str] = ()
) -> str:
    """The script for `sbatch` that runs a sweep.

    Args:
        sweep_path: the sweep's file; the nodes must see it under the same path.
        slurm: the table [slurm] of that file.
        models: the models of the sweep.
        arguments: further arguments of `python -m probes sweep`, without --engine and --address.
    """
    job = "probes-" + re.sub(r"[^\w.-]", "-", sweep_path.stem, flags=re.ASCII)
    sweep = [slurm.python, "-m", "probes", "sweep", str(sweep_path.resolve()), *arguments]
    template = Environment(
        loader=PackageLoader("probes.engines", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    ).get_template("slurm.sh")
    return template.render(
        directives=slurm.directives(job, len(models)),
        setup=slurm.setup.strip("\n"),
        models=[] if slurm.ray else list(map(shlex.quote, models)),
        python=shlex.quote(slurm.python),
        command=shlex.join(sweep),
    )


def submit(text: str) -> str:
    """Hand a script to `sbatch`.

    Returns:
        the number of the job.

    Raises:
        UserError: there is no `sbatch`, or it refuses the script.
    """
    try:
        answer = subprocess.run(
            ["sbatch", "--parsable"], input=text, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise UserError(
            "--engine slurm: there is no sbatch here; run this where jobs are submitted, or write "
            "the script with --dry-run and take it there."
        ) from error
    if answer.returncode:
        why = " ".join(answer.stderr.split()) or f"exit status {answer.returncode}"
        raise UserError(f"--engine slurm: sbatch refuses the job ({why}); correct [slurm].")
    return answer.stdout.strip().partition(";")[0]
