"""The settings of a run: what is refused and what is normalised."""

from pathlib import Path

import pytest
from tiny_runs import run

import probes
from probes.common.errors import UserError
from probes.run.settings import validate

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"taks": ("pos",)}, "unknown setting 'taks'. Did you mean 'tasks'?"),
        ({"tasks": ("poss",)}, "Unknown task 'poss'"),
        ({"layers": (-1,)}, "--layers -1: give a number of at least 0."),
        ({"probes": ()}, "--probes: give at least one."),
        ({"dtype": "float8"}, "--dtype float8: give auto, float32, bfloat16 or float16."),
        ({"device": "tpu"}, "--device tpu: give auto, cpu,"),
        ({"output": Path(__file__)}, "is a file; name a folder."),
    ],
)
def test_bad_settings_from_python_are_user_errors(tiny_bert, tmp_path, settings, message):
    with pytest.raises(UserError) as caught:
        run(tiny_bert, tmp_path, **settings)
    assert message in str(caught.value)
    assert not list(tmp_path.rglob("*.npy"))


def test_a_name_is_only_for_a_model_in_memory():
    with pytest.raises(UserError, match="name='x': only for a model in memory; leave it out"):
        probes.run_probes("all-MiniLM-L6-v2", name="x")


@pytest.mark.parametrize(
    ("field", "given", "meant"),
    [
        ("tasks", "pos", ("pos",)),
        ("tasks", "pos, depth,pos", ("pos", "depth")),
        ("probes", "linear", ("linear",)),
        ("task_from", "a,b", ("a", "b")),
        ("layers", "all", ()),
        ("layers", "3,1", (1, 3)),
        ("layers", "every:4", "every:4"),
        ("layers", 3, (3,)),
        ("batch_tokens", "auto", None),
        ("batch_tokens", "512", 512),
        ("seeds", "2", 2),
    ],
)
def test_python_takes_what_the_flags_take(field, given, meant):
    assert getattr(validate({field: given}), field) == meant


def test_a_memory_budget_is_given_in_bytes_or_units():
    assert validate({"memory": "2GB"}).memory == 2_000_000_000
    assert validate({"memory": "512MiB"}).memory == 512 << 20
    with pytest.raises(UserError, match="--memory"):
        validate({"memory": "lots"})
