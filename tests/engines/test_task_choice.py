"""Which tasks of a plug-in are probed, and which are refused."""

import pytest
from plugged_in import TASK

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.engines.inputs import LazyCorpus
from probes.engines.omissions import Omissions
from probes.engines.settings import validate
from probes.engines.task_choice import choose_tasks, require_measurable
from probes.measurements.plugins import load_file

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


def test_a_task_with_an_unknown_metric_is_an_error_only_if_it_is_asked_for(write, run_with):
    path = write(TASK.replace('"accuracy"', '"acuracy"'))
    with pytest.raises(
        UserError, match=r"'mine': unknown metric 'acuracy'. Did you mean 'accuracy'"
    ):
        run_with(path, tasks=("mine",))
    results = run_with(path, tasks=())
    assert "mine" in results.failed
    assert "pos" in {result.task.name for result in results}


def test_a_metric_for_another_kind_of_task_is_refused(write, run_with):
    with pytest.raises(UserError, match="'nspr' does not score classification tasks"):
        run_with(write(TASK.replace('"accuracy"', '"nspr"')), tasks=("mine",))


def test_a_plug_in_that_the_users_data_cannot_serve_is_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "quiet", False)
    (tmp_path / "mine.py").write_text(TASK)
    load_file(tmp_path / "mine.py")
    rows = [f'{{"tokens": ["dogs", "bark", "{n}"], "y": ["a", "b", "{n % 2}"]}}' for n in range(40)]
    (tmp_path / "own.jsonl").write_text("\n".join(rows))
    corpus = LazyCorpus(find_corpus(str(tmp_path / "own.jsonl"), task_from=("y",)))
    config = validate({"include": [str(tmp_path / "mine.py")], "task_from": ("y",)})
    omissions = Omissions()
    chosen = choose_tasks(config, corpus, omissions)
    assert [task.name for task in chosen] == ["y"]
    assert "mine" in omissions.skipped
    assert not omissions.failed
    said = capsys.readouterr().err
    assert "skipped mine: own has no upos" in said
    assert "skipped pos" not in said


def test_layers_at_which_a_measurement_finds_nothing_are_refused():
    """Layer 0 has no attention heads."""
    config = validate({"measurements": "attention", "layers": "0"})
    with pytest.raises(UserError, match=r"^--layers 0: --measurements attention finds nothing"):
        require_measurable(config, LazyCorpus(find_corpus("sample")))
    require_measurable(
        validate({"measurements": "attention", "layers": "0,1"}), LazyCorpus(find_corpus("sample"))
    )
