"""Runs with plug-ins: what identifies their results, and what happens when they fail."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from board_by_hand import put
from sklearn.metrics import cohen_kappa_score

import probes
from probes.boards.board import make_boards, named
from probes.boards.groups import group
from probes.cli.main import main
from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.measurements import layer_scores
from probes.measurements.current import is_current
from probes.measurements.plugins import discover, load_file
from probes.records.files import find_results
from probes.records.header import PlugIn
from probes.records.keys import FitKey, numerics_version
from probes.records.probe_spec import PROBES
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.statistics.resampled import resampled_scores
from probes.tasks.task import tasks
from probes.training import fit as training

pytestmark = pytest.mark.usefixtures("plug_ins")

TASK = '''\
from probes import Example, task

@task("mine", version=1, needs=["upos"], metric="accuracy")
def mine(sentence):
    """Nouns."""
    for i, tag in enumerate(sentence.upos):
        yield Example("noun" if tag == "NOUN" else "other", (i, i + 1), type=sentence.words[i])
'''
GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-task.md"


def guide_file(name):
    """A file of docs/adding-a-task.md."""
    _, _, rest = GUIDE.read_text().partition(f"```python\n# {name}\n")
    return rest.partition("\n```")[0] + "\n"


@pytest.fixture(autouse=True)
def short_schedule(monkeypatch):
    for name, spec in list(PROBES.items()):
        short = spec.model_copy(update={"epochs": 1, "min_steps": 24, "hidden": spec.hidden // 16})
        monkeypatch.setitem(PROBES, name, short)


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def run(tiny_bert, tmp_path):
    def run(*files, tasks, **settings):
        folders = {"cache_dir": tmp_path / "cache", "output": tmp_path / "results"}
        fixed = {"limit": 60, "quick": True, "device": "cpu", "probes": ("linear",)}
        settings = {**fixed, **folders, **settings}
        return probes.run_probes(str(tiny_bert), include=files, tasks=tasks, **settings)

    return run


def test_a_result_is_reused_until_the_file_changes(write, run, capsys):
    path = write(TASK)
    (first,) = run(path, tasks=("mine",))
    assert first.plug_ins == (
        PlugIn(
            kind="task",
            name="mine",
            source=str(path),
            distribution="",
            sha256=first.plug_ins[0].sha256,
        ),
    )
    assert is_current(first)
    (again,) = run(path, tasks=("mine",))
    assert again == first
    (other,) = run(write(TASK.replace("NOUN", "VERB")), tasks=("mine",))
    assert other.key != first.key
    assert other.examples.labels["noun"] != first.examples.labels["noun"]
    assert is_current(other)
    assert not is_current(first)
    assert len(find_results(path.parent / "results")) == 2


def test_results_of_two_sources_never_share_a_column(write, run):
    path = write(TASK)
    run(path, tasks=("mine", "pos"))
    (newer,) = run(write(TASK + "# changed\n"), tasks=("mine",))
    found = find_results(path.parent / "results")
    assert len(found) == 3
    (table,) = (path.parent / "results").rglob("layers.csv")
    assert sorted(pd.read_csv(table).columns) == ["layer", "mine (linear)", "pos (linear)"]
    (board,) = make_boards(named(found))
    (ranked,) = board.tasks["mine"]
    assert ranked.result.key == newer.key
    ((apart, why),) = board.apart
    assert apart.result.task.name == "mine"
    assert why.startswith("plug-in source task mine ")
    ((units,), _) = group(found)
    assert sorted(unit.name for unit in units.units) == ["mine", "mine", "pos"]
    assert len({unit.title for unit in units.units}) == 3
    csv = pd.read_csv(path.parent / "results" / "leaderboard.csv", keep_default_na=False)
    by_task = csv.groupby("task").plug_ins.unique().map(sorted).to_dict()
    assert by_task["pos"] == [""]
    assert len(by_task["mine"]) == 2
    assert all(text.startswith("task mine ") for text in by_task["mine"])


def test_a_result_whose_plug_in_is_not_loaded_counts_as_current(write, run, plug_ins):
    path = write(TASK)
    (result,) = run(path, tasks=("mine",))
    load_file(write("from probes import task\n" + TASK.replace('"mine"', '"other"')))
    assert is_current(result)


def test_no_column_is_shown_for_two_sources_of_which_none_is_loaded(write, run):
    path = write(TASK)
    (run(path, tasks=("mine",)), run(write(TASK + "# changed\n"), tasks=("mine",)))
    load_file(write(TASK.replace('"mine"', '"other"')))
    run(tasks=("pos",))
    (table,) = (path.parent / "results").rglob("layers.csv")
    assert list(pd.read_csv(table).columns) == ["layer", "pos (linear)"]


def test_keys_of_the_suites_own_tasks_have_not_changed():
    plain = {
        "model": "m",
        "corpus": "c",
        "task": "pos",
        "task_version": 1,
        "probe": PROBES["linear"],
        "pooling": "mean",
        "dtype": "float32",
        "fit_dtype": "float32",
        "project": None,
        "windows": "w",
        "plug_ins": {},
    }
    content = {
        **plain,
        "probe": PROBES["linear"].model_dump(mode="json"),
        "numerics": numerics_version("classification", "linear"),
    }
    import hashlib
    import json

    expected = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    key = {**plain, "kind": "classification"}
    assert FitKey(**key).digest == expected
    assert FitKey(**{**key, "plug_ins": {"task pos": "0"}}).digest != expected
    assert FitKey(**{**key, "fit_dtype": "bfloat16"}).digest != expected
    mlp = {**key, "probe": PROBES["mlp"]}
    assert FitKey(**{**mlp, "kind": "regression"}).digest != FitKey(**mlp).digest


def test_a_metric_and_a_probe_family_are_part_of_the_key_too(write, run):
    metric = write(guide_file("kappa.py"), "kappa.py")
    family = write(
        guide_file("low_rank.py").replace("min_steps=600", "min_steps=24"), "low_rank.py"
    )
    task = write(TASK.replace('"accuracy"', '"kappa", also=["accuracy"]'))
    before = {
        r.probe.family: r
        for r in run(task, metric, family, tasks=("mine",), probes=("linear", "low_rank"))
    }
    kinds = [(each.kind, each.name) for each in before["low_rank"].plug_ins]
    assert kinds == [("task", "mine"), ("metric", "kappa"), ("probe family", "low_rank")]
    assert [each.kind for each in before["linear"].plug_ins] == ["task", "metric"]
    write(metric.read_text() + "# changed\n", "kappa.py")
    after = {
        r.probe.family: r
        for r in run(task, metric, family, tasks=("mine",), probes=("linear", "low_rank"))
    }
    assert all(after[name].key != before[name].key for name in before)


RAISING = TASK.replace(
    "        yield", "        if i == 3: raise KeyError('Number')\n        yield"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RAISING, "the rule raised KeyError: 'Number'. Fix {path}, line 7."),
        (
            TASK.replace("(i, i + 1)", "(i, 99)"),
            "the rule yielded the span (0, 99) for 17 words; spans are [start, end) and must not be empty. "
            "Fix {path}, line 3.",
        ),
        (
            TASK.replace(
                "        yield", "        sentence.feats[i]['Number'] = 'Plur'\n        yield"
            ),
            "the rule raised TypeError: sentences are immutable, since other tasks read them too; "
            "change a copy. Fix {path}, line 7.",
        ),
        (
            TASK.replace('"noun" if', 'random.choice("ab") if').replace(
                "from", "import random\nfrom", 1
            ),
            "when run twice; a rule may depend on the sentence alone",
        ),
        (
            "SEEN = set()\n"
            + TASK.replace("    for i", "    if sentence.id in SEEN: return\n    for i")
            + "    SEEN.add(sentence.id)\n",
            "yielded different examples of sentence 'train-0001' when run twice",
        ),
        (TASK.replace("Example(", "print("), "the rule raised TypeError"),
        (
            TASK.replace("(i, i + 1)", "(i, i + 1), (i, i + 1)"),
            "a span2 in a task of shape 'word'. Fix {path}, line 3.",
        ),
    ],
)
def test_a_failing_rule_is_named_and_the_other_tasks_continue(
    text, message, write, run, tiny_bert, tmp_path, capsys
):
    path = write(text)
    results = run(path, tasks=("mine", "pos"))
    assert [result.task.name for result in results] == ["pos"]
    ((what, why),) = results.failed.items()
    assert what == "tiny-bert · mine"
    assert message.format(path=path) in why
    assert f"missing tiny-bert · mine: {why}" in capsys.readouterr().err
    arguments = [
        "--model",
        str(tiny_bert),
        "--include",
        str(path),
        "--tasks",
        "mine,pos",
        "--quick",
    ]
    arguments += [
        "--probes",
        "linear",
        "--limit",
        "60",
        "--device",
        "cpu",
        "--output",
        str(tmp_path / "r"),
    ]
    assert main([*arguments, "--cache-dir", str(tmp_path / "cache")]) == 1
    assert list((tmp_path / "r").rglob("pos-linear-*.json"))


def test_the_error_of_a_rule_with_a_stand_in_names_the_rules_own_line(write):
    text = TASK.replace("(i, i + 1)", "(i, 9)").replace(
        'needs=["upos"]', 'needs=["xpos"], stand_ins={"xpos": "upos"}'
    )
    path = write(text)
    load_file(path)
    served = tasks.get("mine").on({"upos"})
    with pytest.raises(UserError, match=rf"span \(0, 9\) for 1 words; .* Fix {path}, line 3\."):
        served.examples(Sentence("s", "en", ("dog",), upos=("NOUN",)))


FAILING_METRIC = """
from probes import Metric, class_parts, metrics

def value(gold, sums):
    {body}

metrics.add("bad", Metric(class_parts, value))
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return 1 / 0",
            "the metric 'bad' raised ZeroDivisionError: division by zero. Fix {path}, line 5.",
        ),
        ("return 'x'", "the metric 'bad' of {path}"),
    ],
)
def test_a_failing_metric_costs_only_its_own_task(body, message, write, run):
    path = write(FAILING_METRIC.format(body=body), "bad.py")
    task = write(TASK.replace('"accuracy"', '"bad"'))
    results = run(path, task, tasks=("mine", "pos"))
    assert [result.task.name for result in results] == ["pos"]
    assert message.format(path=path) in results.failed["tiny-bert · mine · linear"]


def test_a_failing_probe_family_costs_only_its_own_results(write, run):
    text = guide_file("low_rank.py").replace("u, a) + b", "u, a)[..., 1:] + b")  # too few outputs
    path = write(text, "low_rank.py")
    results = run(path, tasks=("pos",), probes=("low_rank", "linear"))
    assert [result.probe.family for result in results] == ["linear"]
    assert f"the probe family 'low_rank' of {path}" in results.failed["tiny-bert · pos · low_rank"]


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_a_probe_family_that_cannot_be_made_costs_only_its_own_results(write, run, memory):
    text = guide_file("low_rank.py").replace("self.rank = spec.hidden", "1 / 0")
    path = write(text, "low_rank.py")
    results = run(path, tasks=("pos",), probes=("low_rank", "linear"), memory=memory)
    assert [result.probe.family for result in results] == ["linear"]
    assert "ZeroDivisionError" in results.failed["tiny-bert · pos · low_rank"]


@pytest.mark.parametrize("other", ["linear", "mlp"])
def test_a_family_that_writes_to_its_features_is_refused_and_changes_no_other_score(
    other, write, run, tmp_path
):
    text, place = guide_file("low_rank.py"), "return v @ shared_input("
    assert place in text
    path = write(text.replace(place, f"features.mul_(0)\n        {place}"), "low_rank.py")
    (alone,) = run(path, tasks=("pos",), probes=(other,), output=tmp_path / "alone")
    both = run(path, tasks=("pos",), probes=("low_rank", other))
    assert "LowRank writes to its features" in both.failed["tiny-bert · pos · low_rank"]
    (beside,) = both
    assert (beside.probe.family, beside.layers) == (other, alone.layers)


LENGTHS = """\
from probes import Example, task

def lengths(name, scale, origin):
    @task(name, version=1, needs=["upos"], kind="regression", metric="corpus_spearman", also=["mae"])
    def letters(sentence):
        "How many letters a word has, in some unit and from some origin."
        for i, word in enumerate(sentence.words):
            yield Example(origin + scale * min(len(word), 6), (i, i + 1), type=word)

lengths("letters", 1, 0)
lengths("millimetres", 0.004, 0)
lengths("years", 32, 1900)
"""


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_unit_and_origin_of_a_number_change_no_score(write, run, family, monkeypatch):
    long = PROBES[family].model_copy(update={"min_steps": 200})
    monkeypatch.setitem(PROBES, family, long)
    fitted_on = set()

    def fit(train, dev, *others):
        fitted_on.add((train.labels.numpy().tobytes(), dev.labels.numpy().tobytes()))
        return training.fit(train, dev, *others)

    monkeypatch.setattr(layer_scores, "fit", fit)
    results = run(
        write(LENGTHS),
        tasks=("letters", "millimetres", "years"),
        probes=(family,),
        quick=False,
        twins=0,
    )
    # Probes of all three tasks learn the same labels, to the last bit, controls included.
    assert len(fitted_on) == 1
    plain, small, shifted = results
    assert plain.score(plain.best_layer) > 0.3
    # What is left is how libraries round, which may depend on where arrays lie in memory. A closed
    # form passes that on; the steps of an MLP, and of a mix, amplify it: labels that differed in
    # their last bit moved errors by 3 %, and weights of a mix of two near equal layers by .05.
    rel, apart = {"linear": (0.001, 0.02), "mlp": (0.1, 0.1)}[family]
    for other, scale in ((small, 0.004), (shifted, 32)):
        for ours, theirs in zip(other.layers, plain.layers, strict=True):
            for one, of_plain in zip(ours.cells, theirs.cells, strict=True):
                assert one.test["mae"] == pytest.approx(scale * of_plain.test["mae"], rel=rel)
                expected = of_plain.test["corpus_spearman"]
                assert one.test["corpus_spearman"] == pytest.approx(expected, abs=rel)
                assert one.dev_loss == pytest.approx(scale**2 * of_plain.dev_loss, rel=2 * rel)
        for ours, theirs in zip(other.localisation.mixes, plain.localisation.mixes, strict=True):
            assert ours.weights == pytest.approx(theirs.weights, abs=apart)
            expected = theirs.test["corpus_spearman"]
            assert ours.test["corpus_spearman"] == pytest.approx(expected, abs=apart)


def test_numbers_that_32_bits_do_not_tell_apart_are_learnt_as_others_are(write, run, tmp_path):
    # Float32 holds every 128th second of these; float64 holds each.
    text = LENGTHS + 'lengths("seconds", 1, 1.7e9)\n'
    plain, seconds = run(write(text), tasks=("letters", "seconds"))
    for ours, theirs in zip(seconds.layers, plain.layers, strict=True):
        assert ours.cells[0].test["mae"] == pytest.approx(theirs.cells[0].test["mae"], rel=0.001)
    # What is stored gives the recorded scores: read back, or reading them would fail.
    (path,) = (tmp_path / "results").rglob("seconds-linear-*.json")
    assert resampled_scores(seconds, path) is not None


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_constant_labels_are_predicted_exactly(write, run, family):
    # The mean of many tenths is no tenth in floating point.
    text = LENGTHS + 'lengths("constant", 0, 0.1)\n'
    (found,) = run(write(text), tasks=("constant",), probes=(family,))
    assert all(layer.cells[0].test["corpus_spearman"] is None for layer in found.layers)
    if family == "linear":
        assert all(layer.cells[0].test["mae"] < 1e-6 for layer in found.layers)


APART = """\
from probes import Example, task

@task("apart", version=1, needs=["upos"], kind="regression", metric="corpus_spearman")
def apart(sentence):
    "Small numbers in train, large ones in dev."
    for i, word in enumerate(sentence.words):
        yield Example(1e18 if "dev" in sentence.id else 0.001 * len(word), (i, i + 1), type=word)
"""


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_a_dev_loss_that_is_not_finite_is_refused(write, run, tmp_path, family):
    results = run(write(APART), tasks=("apart", "pos"), probes=(family,))
    assert [result.task.name for result in results] == ["pos"]
    said = f"Task 'apart', {family} probes: the dev loss is not finite, probably because labels"
    assert results.failed[f"tiny-bert · apart · {family}"].startswith(said)
    assert not list((tmp_path / "results").rglob("apart-*.json"))


def test_a_task_with_an_unknown_metric_is_an_error_only_if_it_is_asked_for(write, run):
    path = write(TASK.replace('"accuracy"', '"acuracy"'))
    with pytest.raises(
        UserError, match=r"'mine': unknown metric 'acuracy'. Did you mean 'accuracy'"
    ):
        run(path, tasks=("mine",))
    results = run(path, tasks=())
    assert "mine" in results.failed
    assert "pos" in {result.task.name for result in results}


def test_a_metric_for_another_kind_of_task_is_refused(write, run):
    with pytest.raises(UserError, match="'nspr' does not score classification tasks"):
        run(write(TASK.replace('"accuracy"', '"nspr"')), tasks=("mine",))


def test_a_plugged_in_metric_is_scikit_learns(write):
    load_file(write(guide_file("kappa.py"), "kappa.py"))
    rng = np.random.default_rng(0)
    labels, given = rng.integers(4, size=(2, 300))
    given = np.where(rng.random(300) < 0.5, labels, given)
    gold = Gold(
        labels, np.sort(rng.integers(40, size=300)), ("a", "b", "c", "d"), np.zeros(300, bool)
    )
    ours = metrics.get("kappa")(gold, np.stack([given, labels]))
    assert ours == pytest.approx([cohen_kappa_score(labels, given), 1.0])
    constant = Gold(labels * 0, gold.sentence, ("a",), gold.punctuation)
    assert np.isnan(metrics.get("kappa")(constant, labels[None] * 0)).all()


def test_a_low_rank_probe_cannot_do_what_a_full_one_can(write):
    from probes.training.batches import Batches, batch_bounds
    from probes.training.features import Held
    from probes.training.fit import fit, predict

    load_file(write(guide_file("low_rank.py"), "low_rank.py"))
    torch.manual_seed(0)
    x = torch.randn(1, 600, 16)
    y = x[0, :, :8].argmax(1)[None]
    numbers = torch.arange(600)
    data = Batches(Held(x), y, torch.ones(1, 600), numbers, batch_bounds(numbers))
    shares = {}
    for rank in (1, 8):
        spec = PROBES["low_rank"].model_copy(update={"hidden": rank})
        fitted = fit(data, data, 8, spec, [0])
        shares[rank] = (predict(fitted, Held(x), 8, spec)[0, 0] == y[0]).float().mean().item()
    # One dimension separates few of eight directions; eight separate all.
    assert shares[1] < 0.5
    assert shares[8] > 0.85


def test_stored_results_of_a_metric_that_is_not_loaded_have_no_intervals(tmp_path):
    path = put(tmp_path, "m", "pos", 5)
    (result,) = find_results(tmp_path).values()
    assert resampled_scores(result, path) is not None
    task = result.task.model_copy(update={"metric": "unknown"})
    assert resampled_scores(result.model_copy(update={"task": task}), path) is None


def test_a_full_run_has_everything_for_a_plugged_in_task_and_probe(write, run):
    family = write(
        guide_file("low_rank.py").replace("min_steps=600", "min_steps=24"), "low_rank.py"
    )
    (result,) = run(
        write(TASK), family, tasks=("mine",), probes=("low_rank",), quick=False, seeds=1, twins=0
    )
    assert result.control.types > 1
    assert result.code.n_classes == 2
    assert len(result.localisation.mixes) == 3


CORPUS = """
from pathlib import Path
from probes.data.registered import Registered, corpora
from probes.data.sentence import SPLITS, Corpus, Sentence

HERE = Path(__file__).parent

def read(source):
    make = lambda split, n: Sentence({sentence})
    splits = {{split: tuple(make(split, n) for n in range(3)) for split in SPLITS}}
    return {corpus}

corpora.add("own", Registered("own", "1", "CC0-1.0", "Mine.", {{"all": HERE / "all.txt"}}, read,
    layers=frozenset({layers})))
"""
SENTENCE = 'f"{split}{n}", "en", ("a", "b"), upos=("X", "Y")'
CORPUS_OF = 'Corpus("own", "1", "CC0-1.0", splits)'


@pytest.mark.parametrize(
    ("sentence", "corpus", "layers", "message"),
    [
        (SENTENCE, CORPUS_OF, {"uposs"}, "unknown annotation layer 'uposs'. Did you mean 'upos'?"),
        (
            SENTENCE,
            "1 / 0",
            {"upos"},
            "raised ZeroDivisionError: division by zero. Fix {path}, line 11",
        ),
        (SENTENCE, "splits", {"upos"}, "which is not a Corpus. Fix {path}"),
        (
            SENTENCE.replace('"Y"', ""),
            CORPUS_OF,
            {"upos"},
            "a layer upos that is not a tuple with one entry for each of 2 words as sentence 1 of train",
        ),
        (
            SENTENCE.replace("{n}", ""),
            CORPUS_OF,
            {"upos"},
            "the id 'train' again as sentence 2 of train",
        ),
        (SENTENCE + ", heads=(1, 2)", CORPUS_OF, {"upos"}, "the head 2, which is neither"),
        (
            SENTENCE.replace('"b")', '"")'),
            CORPUS_OF,
            {"upos"},
            "a word that is empty or not a string",
        ),
        (SENTENCE, CORPUS_OF.replace("splits", "{'train': ()}"), {"upos"}, "the splits ['train']"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_named(sentence, corpus, layers, message, write, capsys):
    write("text", "all.txt")
    path = write(CORPUS.format(sentence=sentence, corpus=corpus, layers=layers), "own.py")
    from probes.__main__ import main as command

    assert command(["check", "pos", "--corpus", "own", "--include", str(path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: Corpus 'own': ")
    assert message.format(path=path) in line


def test_the_reader_is_part_of_a_corpus_digest(write):
    from probes.data.find import find_corpus

    write("text", "all.txt")
    text = CORPUS.format(sentence=SENTENCE, corpus=CORPUS_OF, layers={"upos"})
    digests = set()
    for change in ("", "# changed\n"):
        discover([write(text + change, "own.py")])
        source = find_corpus("own")
        digests.add(source.digest)
    assert len(digests) == 2
    assert [s.words for s in source.load().splits["dev"]] == [("a", "b")] * 3


def test_a_plug_in_that_the_users_data_cannot_serve_is_reported(tmp_path, capsys, monkeypatch):
    from probes.common.terminal import progress
    from probes.data.find import find_corpus
    from probes.engines.inputs import LazyCorpus
    from probes.engines.omissions import Omissions
    from probes.engines.task_choice import choose_tasks
    from probes.engines.validation import validate

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
