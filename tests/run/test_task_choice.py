"""The choice of tasks; a task of a plug-in that fails costs its own results."""

import pytest
from plugged_in import TASK, example_file

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.measurements.plugins import load_file
from probes.run.inputs import LazyCorpus
from probes.run.settings import validate
from probes.run.task_choice import Omissions, choose_tasks, require_measurable

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


def test_a_task_with_an_unknown_metric_is_an_error_only_if_it_is_asked_for(write, run_with):
    path = write(TASK.replace('"accuracy"', '"acuracy"'))
    message = r"'mine': unknown metric 'acuracy'. Did you mean 'accuracy'"
    with pytest.raises(UserError, match=message):
        run_with(path, tasks=("mine",))
    results = run_with(path, tasks=())
    assert "mine" in results.failed
    assert "pos" in {result.task.name for result in results.results}


def test_a_metric_for_another_kind_of_task_is_refused(write, run_with):
    with pytest.raises(UserError, match="'nspr' does not score classification tasks"):
        run_with(write(TASK.replace('"accuracy"', '"nspr"')), tasks=("mine",))


def test_a_plug_in_that_the_users_data_cannot_serve_is_reported(tmp_path, capsys):
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
    corpus = LazyCorpus(find_corpus("sample"))
    alone, both = (validate({"measurements": "attention", "layers": x}) for x in ("0", "0,1"))
    with pytest.raises(UserError, match=r"^--layers 0: --measurements attention finds nothing"):
        require_measurable(alone, corpus)
    require_measurable(both, corpus)


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
    own = {"name": str(tmp_path)}
    lacks = f"{tmp_path.name} has no frames"
    few = "no label has 20 words in train and some in dev and test; a task needs two labels"
    for asked, corpus, said in (
        ("pos,semantics", own, rf"^--tasks semantics: .* has the annotation for no task of this group \(srl: {lacks}; roles: {lacks}; .* has no frames\); leave it out, or choose another --corpus\.$"),
        ("discourse,pos", {}, r"^--tasks discourse: .* no task of this group \(coreference: "),
        ("morphology", own, rf"^--tasks morphology: .* \(lemma-script: {few}\); leave it out"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=said):
            chosen_of(asked, **corpus)


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
        ("feats.Nmuber", "^--tasks feats.Nmuber: sample has no such feature. Did you mean 'feats.N"),
        ("feats.Tense", "^--tasks feats.Tense: no label has 20 words in train and some in dev and"),
    ],
)  # fmt: skip
def test_a_feature_that_is_asked_for_and_not_there_is_refused(asked, message):
    with pytest.raises(UserError, match=message):
        chosen_of(asked, limit=5)


LINE = "        yield"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TASK.replace(LINE, f"        if i == 3: raise KeyError('Number')\n{LINE}"),
         "the rule raised KeyError: 'Number'. Fix {path}, line 7."),
        (TASK.replace(LINE, f"        sentence.feats[i]['Number'] = 'Plur'\n{LINE}"),
         "the rule raised TypeError: sentences are immutable, since other tasks read them too; "
         "change a copy. Fix {path}, line 7."),
        (f"COUNT = []\n{TASK.replace('tag ==', 'COUNT.append(1) or len(COUNT) < 4 or tag ==')}",
         "yielded different examples of sentence 'train-0001' when run twice. A rule may depend "
         "only on the sentence"),
    ],
)  # fmt: skip
def test_a_failing_rule_is_named_and_the_other_tasks_continue(
    text, message, write, run_with, capsys
):
    path = write(text)
    results = run_with(path, tasks=("mine", "pos"))
    assert [result.task.name for result in results.results] == ["pos"]
    ((what, why),) = results.failed.items()
    assert what == "tiny-bert · mine"
    assert message.format(path=path) in why
    assert f"missing tiny-bert · mine: {why}" in capsys.readouterr().err


FAILING_METRIC = """
from probes import Metric, class_parts, metrics

def value(sums):
    {body}

metrics.add("bad", Metric(class_parts, value))
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / 0", "the metric 'bad' raised ZeroDivisionError: division by zero. Fix {path}, line 5."),
        ("return 'x'", "the metric 'bad' of {path}"),
    ],
)  # fmt: skip
def test_a_failing_metric_costs_only_its_own_task(body, message, write, run_with):
    path = write(FAILING_METRIC.format(body=body), "bad.py")
    task = write(TASK.replace('"accuracy"', '"bad"'))
    results = run_with(path, task, tasks=("mine", "pos"))
    assert [result.task.name for result in results.results] == ["pos"]
    assert message.format(path=path) in results.failed["tiny-bert · mine · linear"]


def test_a_failing_probe_family_costs_only_its_own_results(write, run_with):
    text = example_file("low_rank.py").replace("u, a) + b", "u, a)[..., 1:] + b")  # too few outputs
    path = write(text, "low_rank.py")
    results = run_with(path, tasks=("pos",), probes=("low_rank", "linear"))
    assert [result.probe.family for result in results.results] == ["linear"]
    assert f"the probe family 'low_rank' of {path}" in results.failed["tiny-bert · pos · low_rank"]


@pytest.mark.parametrize("other", ["linear", "mlp"])
def test_a_family_that_writes_to_its_features_is_refused_and_changes_no_other_score(
    other, write, run_with, tmp_path
):
    text, place = example_file("low_rank.py"), "return v @ shared_input("
    assert place in text
    path = write(text.replace(place, f"features.mul_(0)\n        {place}"), "low_rank.py")
    (alone,) = run_with(path, tasks=("pos",), probes=(other,), output=tmp_path / "alone").results
    both = run_with(path, tasks=("pos",), probes=("low_rank", other))
    assert "LowRank writes to its features" in both.failed["tiny-bert · pos · low_rank"]
    (beside,) = both.results
    assert (beside.probe.family, beside.layers) == (other, alone.layers)
