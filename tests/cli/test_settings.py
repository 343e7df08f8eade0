"""The settings of a run: what is refused and what is normalised."""

from pathlib import Path

import pytest
from tiny_runs import run

from probes.common.errors import UserError
from probes.engines.validation import validate

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"taks": ("pos",)}, "unknown setting 'taks'. Did you mean 'tasks'?"),
        ({"tasks": ("poss",)}, "Unknown task 'poss'"),
        ({"layers": (-1,)}, "--layers -1: input should be greater than or equal to 0"),
        ({"probes": ()}, "--probes"),
        ({"dtype": "float8"}, "--dtype float8"),
        ({"device": "tpu"}, "--device tpu"),
        ({"output": Path(__file__)}, "cannot be written"),
    ],
)
def test_bad_settings_from_python_are_user_errors(tiny_bert, tmp_path, settings, message):
    with pytest.raises(UserError) as caught:
        run(tiny_bert, tmp_path, **settings)
    assert message in str(caught.value)
    assert not list(tmp_path.rglob("*.npy"))


def test_layers_are_sorted_without_duplicates():
    assert validate({"layers": [2, 0, 2, 10, 1]}).layers == (0, 1, 2, 10)
    assert validate({"layers": ()}).layers == ()


def test_a_memory_budget_is_given_in_bytes_or_units():
    assert validate({"memory": "2GB"}).memory == 2_000_000_000
    assert validate({"memory": "512MiB"}).memory == 512 << 20
    with pytest.raises(UserError, match="--memory"):
        validate({"memory": "lots"})
