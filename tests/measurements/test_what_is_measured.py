"""Where evidence is gathered: at which layers and how often, and for which tasks and probes."""

import pytest

from probes.measurements.measurement import Request, ScoresBehind, get_measurement
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import tasks

EVERY = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("name", "family", "level", "layers", "best", "expected"),
    [
        ("selectivity", "linear", "standard", EVERY, 2, dict.fromkeys(EVERY, 3)),
        ("selectivity", "linear", "full", EVERY, 2, dict.fromkeys(EVERY, 10)),
        ("selectivity", "mlp", "standard", EVERY, 2, {0: 3, 2: 3, 3: 3}),
        ("selectivity", "mlp", "full", EVERY, 2, dict.fromkeys(EVERY, 3)),
        ("training_variance", "linear", "standard", EVERY, 2, dict.fromkeys(EVERY, 5)),
        ("training_variance", "linear", "full", EVERY, 2, dict.fromkeys(EVERY, 5)),
        ("training_variance", "mlp", "standard", EVERY, 2, {0: 4, 2: 4, 3: 4}),
        ("training_variance", "mlp", "full", EVERY, 2, dict.fromkeys(EVERY, 4)),
        ("description_length", "linear", "standard", (0, 1), 1, {0: 1, 1: 1}),
        ("localisation", "linear", "standard", EVERY, 1, dict.fromkeys(EVERY, 1)),
        ("localisation", "linear", "standard", (0, 1, 2), 1, {}),
        ("conditional_probing", "linear", "standard", EVERY, 2, {2: 1}),
        ("conditional_probing", "linear", "standard", EVERY, 0, {3: 1}),
        ("conditional_probing", "linear", "standard", (0, 2), 0, {2: 1}),
        ("conditional_probing", "linear", "full", EVERY, 2, {1: 1, 2: 1, 3: 1}),
        ("conditional_probing", "linear", "standard", (1, 2, 3), 2, {}),
        ("conditional_probing", "linear", "full", (1, 2, 3), 2, {}),
        ("conditional_probing", "linear", "full", (0,), 0, {}),
    ],
)
def test_the_layers_and_how_often(name, family, level, layers, best, expected):
    scored = ScoresBehind(PROBES[family], layers, best, True)
    request = Request(layers, 3, level=level, scored=scored)
    assert get_measurement(name).extent(request) == expected


def test_without_types_there_are_no_control_tasks():
    request = Request((0, 1), 1, scored=ScoresBehind(PROBES["linear"], (0, 1), 1, False))
    assert get_measurement("selectivity").extent(request) == {}


PLUG_IN = PROBES["linear"].model_copy(update={"family": "mine"})


@pytest.mark.parametrize(
    ("name", "task", "probe", "why"),
    [
        ("localisation", "pos", PROBES["linear"], ""),
        ("localisation", "pos", PROBES["mlp"], "only convex probes are fitted on mixes"),
        ("conditional_probing", "pos", PROBES["linear"], ""),
        (
            *("conditional_probing", "pos", PROBES["mlp"]),
            "only convex probes are fitted on concatenated layers",
        ),
        ("description_length", "pos", PROBES["linear"], ""),
        ("description_length", "pos", PROBES["mlp"], "only convex probes have an online code"),
        ("description_length", "depth", PROBES["linear"], "it is not defined for regression"),
        ("malformed", "pos", PROBES["mlp"], ""),
        (
            "malformed",
            "pos",
            PLUG_IN,
            "only linear, mlp, mean-difference, sparse probes are applied to other text",
        ),
        (
            *("malformed", "tree-depth", PROBES["mlp"]),
            "a malformed sentence need not have the label of the whole one",
        ),
    ],
)
def test_why_it_is_not_made(name, task, probe, why):
    assert get_measurement(name).missing(tasks.get(task), probe, "full") == why
