"""Runs the suite on the CPU, then on a simulated second device, and prints what came out as JSON.

    python tests/helpers/on_both_devices.py MODEL FOLDER

A program, since the simulation cannot be taken back in a process.
"""

import json
import sys
from pathlib import Path
from typing import Any

import second_device
import torch

import probes
from probes.records.probe_spec import PROBES
from probes.training import convex
from probes.training import scalar_mix as mixing

TASKS = ("depth", "agreement", "pos")
STEPS = 6


def main(model: Path, folder: Path) -> None:
    """Print scores, codelengths and crossings."""
    torch.set_num_threads(1)
    mixing._MIN_STEPS = STEPS
    # No threads of autograd serve the simulation: mixes stay as they start on both.
    torch.autograd.grad = lambda of, by, weight: [torch.zeros_like(x) * weight.sum() for x in by]
    found = {"cpu": suite(model, folder, "cpu")}
    second_device.simulate()
    with second_device.Simulation():
        found["mixed"] = mixing_is_refused()
        found["elsewhere"] = suite(model, folder, second_device.NAME)
        found["crossings"] = []
        # Steps of L-BFGS wait for the values of their problems; those of Adam must not.
        convex.fit_full_batch = lambda train, family, loss, start, *rest: start
        for steps in (STEPS, 2 * STEPS):
            second_device.waits.clear()
            short = {"tasks": ("pos",), "probes": ("linear",), "quick": True}
            apart = folder / f"{steps} steps"  # a full result would be computed in full again
            suite(model, folder, second_device.NAME, steps, output=apart, **short)
            found["crossings"].append(len(second_device.waits))
    print(json.dumps(found))


def suite(
    model: Path, folder: Path, device: str, steps: int = STEPS, **settings: Any
) -> dict[str, list[float]]:
    """Scores, spreads, selectivity and codelengths, by task and probe."""
    for family, spec in PROBES.items():
        sizes = {"hidden": 16, "checks": 2} if spec.hidden else {"checks": 1}
        update = {"epochs": 1, "min_steps": steps, **sizes}
        PROBES[family] = spec.model_copy(update=update)
    settings = {
        "tasks": TASKS,
        "limit": 20,
        "batch_tokens": 1024,
        "seeds": 3,
        "twins": 0,
        "evidence": ("training_variance", "selectivity", "description_length"),
        "device": device,
        "cache_dir": folder / device,
        "output": folder / device,
        "overwrite": "always",
        **settings,
    }
    results = probes.run_probes(str(model), corpus="sample", **settings)
    return {
        f"{r.task.name} {r.probe.family}": [
            *(
                row.value
                for row in r.rows
                if row.layer is not None
                and (row.metric == "dev_loss" or row.split == "test")
                and not {"group", "label"} & row.axes.keys()
            ),
            *(
                number.value
                for name in ("training_variance", "selectivity", "description_length")
                if name in r.evidence
                for number in r.evidence[name].rows
                if number.metric != "p_best" and number.value is not None
            ),
        ]
        for r in results.results
    }


def mixing_is_refused() -> bool:
    """Whether the simulation notices what it is for."""
    try:
        torch.zeros(2, device=second_device.NAME) + torch.ones(2)
    except second_device.MixedError:
        return True
    return False


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
