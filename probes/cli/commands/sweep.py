"""`python -m probes sweep`: models × corpora × settings, from a TOML file."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping

from probes.cli.arguments import add_format, place
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.engines.slurm import script, submit
from probes.engines.sweep_file import Sweep, read_sweep

SUMMARY = "Run what a TOML file asks for: models × corpora × settings."

OVERRIDING = ("engine", "address", "workers", "output", "cache_dir", "data_dir", "offline")
"""Flags of `run_probes.py` that count for all runs, whatever the file says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command; those that are not given leave the file's values."""
    add = parser.add_argument
    add("file", type=place, metavar="FILE", help="a .toml file; see docs/sweeps.md")
    add("--dry-run", action="store_true", help="say what would be computed")
    add("--model", metavar="M", help="run only this one of the file's models")
    given = argparse.SUPPRESS
    add("--engine", default=given, choices=("local", "ray", "slurm"), help="where it runs")
    add("--address", default=given, metavar="A", help="of a Ray cluster, or auto")
    add("--workers", default=given, metavar="N", help="processes that measure side by side")
    add("--output", default=given, metavar="DIR", help="where results go")
    add("--data-dir", default=given, metavar="DIR", help="searched for corpora (PROBES_DATA_DIR)")
    add("--cache-dir", default=given, metavar="DIR", help="where vectors are kept")
    add("--offline", default=given, action="store_true", help="never use the network")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Run or plan the sweep, or submit it.

    Raises:
        UserError: the file, or one of its values, cannot be used; nothing has run then.
    """
    overriding = {name: getattr(options, name) for name in OVERRIDING if hasattr(options, name)}
    asked = overriding.get("engine")
    if asked == "slurm":
        del overriding["engine"]
    sweep = read_sweep(options.file, overriding)
    if options.model:
        sweep = sweep.of_model(options.model)
    if (asked or sweep.file.engine) == "slurm":
        return _on_slurm(options, sweep, overriding)
    runs = sweep.runs
    if all(each.config.offline for each in runs):
        os.environ["HF_HUB_OFFLINE"] = "1"

    from probes.cli.sweeping import measure_all, plan_all

    if options.dry_run:
        missing = plan_all(runs)
    else:
        missing = measure_all(
            runs, shlex.join(["python", "-m", "probes", "sweep", str(options.file)])
        )
    for what, why in missing.items():
        progress.warn(f"missing {what}: {why}")
    if missing and not options.dry_run:
        progress.say("next    the same command goes on with what is missing", "next")
    return 1 if missing else 0


def _on_slurm(options: argparse.Namespace, sweep: Sweep, overriding: Mapping[str, object]) -> int:
    """Submit a job that runs the sweep; with --dry-run print its script.

    Raises:
        UserError: an address is given, which the job has of its own; or the job is refused.
    """
    if "address" in overriding:
        raise UserError(
            f"--address {overriding['address']}: a job of SLURM starts Ray itself; leave it out."
        )
    arguments = []
    for name, value in overriding.items():
        arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    models = [options.model] if options.model else sweep.models
    if options.model and sweep.file.slurm.ray:
        arguments += ["--model", options.model]
    text = script(options.file, sweep.file.slurm, models, arguments)
    if options.dry_run:
        print(text, end="")
    else:
        print(f"submitted as job {submit(text)}")
    return 0
