"""Which tasks of a plug-in are probed, and which are refused."""

import pytest
from plugged_in import TASK

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.measurements.plugins import load_file
from probes.run.inputs import LazyCorpus
from probes.run.settings import validate
from probes.run.task_choice import Omissions, choose_tasks, require_measurable

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


def test_an_unknown_metric_is_answered_by_those_of_the_kind_of_task(write, run_with):
    fitting = "accuracy, balanced_accuracy, macro_f1, macro_f1_20, micro_f1, span_f1"
    with pytest.raises(UserError, match=f"unknown metric 'f1'. Known: {fitting}.$"):
        run_with(write(TASK.replace('"accuracy"', '"f1"')), tasks=("mine",))


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


def chosen_of(asked, sites="block", **corpus):
    """The tasks that are chosen of a corpus, and what is left out."""
    omissions = Omissions()
    found = LazyCorpus(find_corpus(corpus.pop("name", "sample"), **corpus))
    chosen = choose_tasks(validate({"tasks": asked, "sites": sites}), found, omissions)
    return [task.name for task in chosen], omissions.skipped


def test_groups_and_names_may_be_mixed_and_what_a_group_lacks_is_said():
    chosen, skipped = chosen_of("syntax,length")
    assert {"pos", "deprel", "tree-depth", "length"} <= set(chosen)
    assert not {"srl", "position", "constituent"} & set(chosen)
    assert skipped["constituent"] == "sample has no constituents"


def test_groups_are_served_within_blocks_too():
    chosen, _ = chosen_of("semantics", sites="attention,mlp")
    assert chosen[:2] == ["srl@attention", "srl@mlp"]


def test_a_group_of_which_a_corpus_has_no_task_is_refused(tmp_path):
    line = "1\tA\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    for split in ("train", "dev", "test"):
        (tmp_path / f"xx_own-ud-{split}.conllu").write_text(line)
    with pytest.raises(UserError) as caught:
        chosen_of("pos,semantics", name=str(tmp_path))
    name = tmp_path.name
    said = str(caught.value)
    assert said.startswith(
        f"--tasks semantics: {name} has the annotation for no task of this group (srl: {name} has no frames; "
        f"roles: {name} has no frames; "
    )
    assert said.endswith("has no frames); leave it out, or choose another --corpus.")
    with pytest.raises(
        UserError, match=r"^--tasks discourse: .* no task of this group \(coreference: "
    ):
        chosen_of("discourse,pos")
    lemmas = "lemma-script: no label has 20 words in train and some in dev and test; a task needs two labels"
    with pytest.raises(UserError, match=rf"^--tasks morphology: .* \({lemmas}\); leave it out"):
        chosen_of("morphology", name=str(tmp_path))


def test_features_are_tasks_by_group_and_by_name():
    chosen, skipped = chosen_of("feats.Number,morphology", limit=300)
    assert chosen[0] == "feats.Number"
    assert {"feats.Tense", "lemma-script"} < set(chosen)
    assert skipped["feats.Poss"].startswith("only Yes has 20 words in train")
    assert set(skipped).isdisjoint(chosen)
    assert chosen_of("feats.Tense,pos", limit=300)[0] == ["feats.Tense", "pos"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            "feats.Nmuber",
            "^--tasks feats.Nmuber: sample has no such feature. Did you mean 'feats.N",
        ),
        ("feats.Tense", "^--tasks feats.Tense: no label has 20 words in train and some in dev and"),
    ],
)
def test_a_feature_that_is_asked_for_and_not_there_is_refused(asked, message):
    with pytest.raises(UserError, match=message):
        chosen_of(asked, limit=5)
