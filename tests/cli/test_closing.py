"""What a run suggests when it ends."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from probes.cli.run import next_step


def run(name, family="linear"):
    return SimpleNamespace(
        config=SimpleNamespace(output=Path("results"), evidence_names=("training_variance",)),
        results={("pos", family): None},
        evidence=("training_variance",),
        model=SimpleNamespace(is_twin=name.startswith("random")),
        folder=Path("results") / name / "ewt",
    )


@pytest.mark.parametrize(
    ("runs", "command"),
    [
        ((run("a"), run("random-a")), "report results"),
        ((run("a"), run("random-a"), run("b")), "compare results/a/ewt results/b/ewt"),
        ((run("a", "mlp"), run("b", "mlp")), "compare results/a/ewt results/b/ewt --probe mlp"),
    ],
)
def test_the_next_step_after_evidence(runs, command):
    assert next_step(runs) == f"python -m probes {command}"
