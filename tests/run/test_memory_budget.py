"""That a run stays within its memory, and refuses a budget that is too small."""

import re

import pytest

import probes
from probes.common.errors import UserError

pytestmark = pytest.mark.integration


@pytest.fixture
def run(tiny_bert, tmp_path):
    def run(**settings):
        return probes.run_probes(
            str(tiny_bert),
            limit=20,
            probes=("linear",),
            device="cpu",
            cache_dir=tmp_path / "cache",
            output=tmp_path / "results",
            **{"tasks": ("pos",), **settings},
        )

    return run


def test_a_budget_that_is_too_small_is_refused_before_anything_is_computed(
    run, tmp_path, short_schedule
):
    with pytest.raises(UserError) as caught:
        run(memory="1MB", tasks=("pos", "depth"), twins=0)
    said = re.fullmatch(
        r"--memory 1MB: fitting (pos|depth) with linear probes takes at least (\d+)MB, one layer "
        r"at a time; give --memory \2MB, or reduce the need with --quick or --project\.",
        str(caught.value),
    )
    assert not (tmp_path / "cache" / "vectors").exists()
    assert not list((tmp_path / "results").rglob("*.json"))
    less = int(said[2]) * 1_000_000 - 1_000_000
    with pytest.raises(UserError, match=f"takes at least {said[2]}MB"):
        run(memory=less, tasks=("pos", "depth"), twins=0)
    assert run(memory=f"{said[2]}MB", tasks=("pos", "depth"), twins=0).frame.score.notna().all()
    # Where nothing is left to be done, nothing is needed.
    assert len(run(memory="1MB", tasks=("pos", "depth"), twins=0).results) == 2
