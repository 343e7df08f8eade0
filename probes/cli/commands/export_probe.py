"""`python -m probes export-probe`: writes one fitted probe as a file for numpy."""

from __future__ import annotations

import argparse

import numpy as np
from safetensors.numpy import save

from probes.cli.arguments import path_argument
from probes.cli.fitted_probes import find_probe
from probes.common.errors import UserError
from probes.common.files import published

SUFFIX = ".safetensors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "results",
        type=path_argument,
        help="a folder of results of one model and corpus, or a file in it",
    )
    add("--task", required=True, metavar="T")
    add("--layer", required=True, type=int, metavar="K", help="from 0, the embedding output, or -1")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add(
        "-o", "--output", type=path_argument, required=True, metavar="FILE", help=f"a {SUFFIX} file"
    )
    add(
        "--cache-dir",
        type=path_argument,
        metavar="DIR",
        help="cache of the run (default: PROBES_CACHE_DIR, or the one noted beside the results)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the probe and print its path.

    Raises:
        UserError: there is no such probe, or the file cannot be written.
    """
    if options.output.suffix != SUFFIX:
        raise UserError(f"{options.output}: the name must end in {SUFFIX}.")
    about = options.task, options.layer, options.probe
    probe = find_probe(options.results, *about, None, options.cache_dir)
    arrays = {}
    for number, (weight, bias) in enumerate(probe.folded, 1):
        suffix = f"-{number}" if number > 1 else ""
        arrays["weight" + suffix] = np.ascontiguousarray(weight)
        arrays["bias" + suffix] = bias
    if probe.direction is not None:
        arrays["direction"] = probe.direction[0].astype(np.float32)
    with published(options.output) as temporary:
        temporary.write_bytes(save(arrays, probe.card))
    print(options.output)
    return 0
