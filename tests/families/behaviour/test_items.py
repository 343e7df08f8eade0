"""Pairs and completions of models that know a grammar, against plain passes."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from grammar_models import training_text
from measuring import command_line, measure
from plain_answers import CAUSAL, L2R, PLL, distribution, run_models, slow_scores
from slow_scores import within_word_l2r
from toy_grammar import PHENOMENA, minimal_pairs

from probes.cli.main import main
from probes.data.items import Item
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoding import read
from probes.extraction.reading.token_scores import TokenScores, joined_token_scores
from probes.extraction.reading.views import view_over
from probes.families.behaviour.completion import answer_columns
from probes.families.behaviour.item_scores import text_in
from probes.records.record_files import read_arrays

EACH = 40
"""Pairs of each paradigm."""

PAIRS = ["UID", "linguistics_term", "sentence_good", "sentence_bad"]
SAME = ["The cooks slept.", "Birds sing.", "She reads the letters."]
LONGER = ["The cooks near the bridge ate.", "The judges near the bridge ate."]
"""Less likely than their first two words and the last one, but not by the token."""


def written(path, columns, rows):
    """A table as a file of items."""
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def pairs_run(folders, tmp_path_factory):
    """Pairs of the grammar, and three of equal sentences, measured of both models and twins."""
    given = minimal_pairs(EACH, seed=41, seen=set(training_text()))
    pairs = [tuple(pair[name] for name in PAIRS) for pair in given]
    pairs += [("same", "none", text, text) for text in SAME]
    pairs += [("shorter", "none", x, " ".join(np.array(x.split())[[0, 1, -1]])) for x in LONGER]
    models, out = [folders["masked"], folders["causal"]], tmp_path_factory.mktemp("pairs")
    corpus = str(written(out / "pairs.csv", PAIRS, pairs))
    results = run_models(models, out, corpus=corpus, twins=1, measurements="pairs")
    records = {record.model.name: record for record in results.others}
    arrays = {record.model.name: read_arrays(path) for path, record in results.measured.items()}
    phenomena = {uid: term for uid, term, *_ in pairs}
    return SimpleNamespace(pairs=pairs, phenomena=phenomena, records=records, arrays=arrays)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_pairs_of_the_grammar_are_told_apart_and_not_by_random_twins(kind, pairs_run):
    for name, low, high in ((kind, 0.95, 1), (f"random:{kind}", 0.15, 0.85)):
        record = pairs_run.records[name]
        for scoring in (PLL, L2R) if kind == "masked" else (CAUSAL,):
            axes = {"scoring": scoring, "per": "text"}
            for uid in PHENOMENA:
                at = {"paradigm": uid, "phenomenon": pairs_run.phenomena[uid], **axes}
                row = record.rows.at("pair_accuracy", **at)
                assert row.n == EACH
                assert low <= row.value <= high
                if row.low is not None:  # of a share of 40, nearly the normal interval
                    half = 1.96 * (row.value * (1 - row.value) / EACH) ** 0.5
                    assert row.interval == pytest.approx(
                        (row.value - half, row.value + half), abs=0.04
                    )
            if name != kind:
                value = record.rows.at("pair_accuracy", **axes).value
                assert value == pytest.approx(0.5, abs=0.12)
        same = [row for row in record.rows if row.axes.get("paradigm") == "same"]
        assert {(row.value, row.low, row.high, row.n) for row in same} == {(0.5, None, None, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_accuracy_is_that_of_plain_passes(kind, pairs_run, plain):
    record, values = pairs_run.records[kind], pairs_run.arrays[kind]["values"]
    twin = pairs_run.arrays[f"random:{kind}"]["values"]
    assert values.shape == (4 if kind == "masked" else 2, 5 * EACH + 5)
    uids = np.array([uid for uid, *_ in pairs_run.pairs])
    scales = [fact for name, fact in record.facts.items() if name.startswith("scale ")]
    assert len(scales) == len(values)
    for scale, name in enumerate(scales):
        scoring, per = name.removeprefix("pair_accuracy, scoring ").split(", per ")
        take = np.sum if per == "text" else np.mean
        for i in [*range(0, 5 * EACH, 8), *range(5 * EACH, 5 * EACH + 5)]:
            good, bad = (
                take(slow_scores(scoring, *plain[kind], text)) for text in pairs_run.pairs[i][2:]
            )
            assert values[scale, i] == (1 + np.sign(round(good - bad, 5))) / 2
        axes = {"scoring": scoring, "per": per}
        assert record.rows.at("pair_accuracy", **axes).value == pytest.approx(values[scale].mean())
        for uid in PHENOMENA:
            at = {"paradigm": uid, "phenomenon": pairs_run.phenomena[uid], **axes}
            row = pairs_run.records[f"random:{kind}"].rows.at("pair_accuracy", **at)
            assert row.value == pytest.approx(twin[scale, uids == uid].mean())
        means = [values[scale, uids == uid].mean() for uid in dict.fromkeys(uids)]
        mean = record.rows.at("mean_of_paradigms", **axes)
        assert (mean.value, mean.n) == (pytest.approx(np.mean(means)), 7)


@pytest.mark.slow
def test_pairs_that_become_equal_when_cut_do_not_count(folders, plain, tmp_path):
    pairs = [
        ("The cooks are talking.", "The cooks are talk."),
        ("The cook near the nurses is talking.", "The cook near the nurses are talking."),
        ("A cook is talking.", "Cooks a is talking."),
    ]
    corpus = written(tmp_path / "pairs.csv", PAIRS[2:], pairs)
    options = {"pairs": {"malformed": True}}
    record = measure("pairs", folders["causal"], corpus, tmp_path, options=options).record
    assert "2 of 3 items do not count when cut: their texts become equal." in record.notes
    axes = {"scoring": CAUSAL, "per": "text", "perturbation": "cut"}
    cut = record.rows.at("pair_accuracy", **axes)
    good, bad = (slow_scores(CAUSAL, *plain["causal"], x).sum() for x in ("A cook", "Cooks a"))
    assert (cut.value, cut.n) == (float(good > bad), 1)
    whole = [slow_scores(CAUSAL, *plain["causal"], text).sum() for text in pairs[2]]
    lost = record.rows.at("lost", of="pair_accuracy", **axes)
    assert (lost.value, lost.n) == (float(whole[0] > whole[1]) - float(good > bad), 1)


FACTS = ["subject", "template", "object", "relation"]
SUBJECTS = ("cook", "nurse", "judge", "farmer", "guest", "teacher")


def context(before, good, *rivals, after=" talking."):
    texts = {name: (before, f" {name}", after) for name in (good, *rivals)}
    return Item(before, "contexts", "p", texts, target=1, answers=(good,), good=good, rivals=rivals)


def facts():
    """Verbs that agree and verbs that do not, and one that has several pieces."""
    for noun, number in product(SUBJECTS, ("", "s")):
        template = f"The [X] near the {'nurse' if number else 'nurses'} [Y] talking."
        for answer in ("is", "are", "was", "were", "does", "watches"):
            relation = f"{answer} {'plural' if number else 'singular'}"
            yield noun + number, template, answer, relation


@pytest.mark.slow
def test_completions_are_the_likeliest_words_of_a_plain_pass(folders, plain, tmp_path):
    model, tokenizer = plain["masked"]
    path = written(tmp_path / "facts.csv", FACTS, facts())
    record = measure("cloze", folders["masked"], path, tmp_path).record
    assert record.measurement == "completion"
    ranks = {}
    for subject, template, word, relation in facts():
        answer = tokenizer(word, add_special_tokens=False)["input_ids"]
        if len(answer) > 1:
            continue
        ids = tokenizer(template.replace("[X]", subject).replace("[Y]", "[MASK]"))["input_ids"]
        log_p = distribution(model, ids)[ids.index(tokenizer.mask_token_id)]
        rank = int((log_p > log_p[answer[0]]).sum())
        ranks.setdefault(relation, []).append(rank)
    assert len(ranks) == 10
    every = np.concatenate(list(map(np.array, ranks.values())))
    assert len(np.unique(every)) > 5
    for depth in (1, 5, 10):
        whole = record.rows.at("completion_accuracy", likeliest=depth)
        assert (whole.value, whole.n) == (pytest.approx((every < depth).mean()), len(every))
        for relation, its in ranks.items():
            row = record.rows.at("completion_accuracy", likeliest=depth, paradigm=relation)
            assert row.value == pytest.approx(np.mean([rank < depth for rank in its]))
    assert 0 < (every < 1).mean() < (every < 10).mean() <= 1
    assert any("12 of 72 items have no answer of one token" in note for note in record.notes)


@pytest.mark.slow
def test_the_better_word_is_compared_with_each_rival_and_with_all(folders, plain):
    """Words of one and of several pieces; by hand from plain passes over whole texts."""
    nouns = [("The cook near the nurses", "is"), ("The cooks near the nurse", "are")]
    other = {"is": "are", "are": "is", "watches": "watch", "watch": "watches"}
    items = [context(b, g, other[g], "were") for b, g in nouns]
    items += [context(b, other[g], g, "were") for b, g in nouns]
    items += [context("The cook", "watches", "watch", after=" the nurses.")]
    items += [context("The cooks", "watches", "watch", after=" the nurses.")]
    between = context("The cook near the nurses", "are", "is", "watch")
    items += [between]
    model, tokenizer = plain["masked"]
    encoder = load_encoder(find_model(str(folders["masked"])), device="cpu", lm_head=True)
    view = view_over((text_in(item, x) for item in items for x in item.texts), "written")
    found = list(read(view, TokenScores(), encoder))
    parts = [{name: x.numpy() for name, x in arrays.items()} for _, arrays in found]
    its = joined_token_scores(view, [shard for shard, _ in found], parts)
    columns = {scale.name: x for scale, x in answer_columns(items, its, False)}

    def p(item, word):
        text = "".join(item.texts[word])
        n_before = len(tokenizer(item.texts[word][0], add_special_tokens=False)["input_ids"])
        n = len(tokenizer(word, add_special_tokens=False)["input_ids"])
        return float(np.exp(sum(within_word_l2r(model, tokenizer, text)[n_before : n_before + n])))

    for threshold, name in product((0.0, 0.01), ("is", "are", "were", "watch", None)):
        axes = f", rival {name}" * bool(name)
        column = columns[f"sensitivity, threshold {threshold}{axes}"]
        for item, value in zip(items, column.tolist(), strict=True):
            against = [x for x in item.rivals if name in (None, x)]
            if not against:
                assert np.isnan(value)
            else:
                margin = min(p(item, item.good) - p(item, x) for x in against)
                assert value == float(margin > threshold)
    assert columns["sensitivity, threshold 0.0"].tolist()[-1] == 0
    assert [p(between, x) for x in ("is", "are", "watch")] == sorted(
        (p(between, x) for x in between.texts), reverse=True
    )
    assert columns["sensitivity, threshold 0.0, rival are"].tolist()[0] == 1.0


_SCALES = {"likeliest", "threshold"}


@pytest.mark.slow
def test_unlike_phenomena_are_not_pooled_and_chance_stands_beside_each(
    folders, tmp_path, monkeypatch
):
    three = replace(context("The cook near the nurses", "is", "are", "were"), phenomenon="expected")
    two = [context(noun, "is", "are") for noun in ("The cook", "The nurse")]
    plain, negated = replace(two[0], phenomenon="plain"), replace(two[1], phenomenon="negated")
    items = [three, plain, replace(negated, answers=())]
    its = (replace(item, paradigm=item.phenomenon) for item in items)
    monkeypatch.setattr("probes.data.item_suites._fact", lambda *row: next(its))
    path = written(tmp_path / "facts.csv", FACTS[:3], [("x", "[X] [Y]", "y")] * 3)
    record = measure("cloze", folders["masked"], path, tmp_path).record
    for metric in ("completion_accuracy", "sensitivity", "sensitivity_chance"):
        assert not [x for x in record.rows if x.metric == metric and not {*x.axes} - _SCALES]
    for name, chance in (("expected", 1 / 3), ("plain", 1 / 2), ("negated", 1 / 2)):
        at = {"phenomenon": name, "threshold": 0.0}
        assert record.rows.at("sensitivity_chance", **at).value == pytest.approx(chance)
        assert record.rows.at("sensitivity", **at)
        asked = record.rows.at("completion_accuracy", phenomenon=name, likeliest=1)
        assert bool(asked) == (name != "negated")
    against = {"phenomenon": "expected", "threshold": 0.0, "rival": "were"}
    assert record.rows.at("sensitivity_chance", **against).value == 0.5


@pytest.fixture
def few(tmp_path):
    return written(tmp_path / "few.csv", PAIRS[2:], [("The cooks sing.", "The cooks sings.")])


@pytest.mark.slow
def test_a_model_without_a_head_is_left_out_and_the_other_is_measured(
    tiny_bert, folders, few, tmp_path, capsys
):
    why = "its files have no weights of a language-model head"
    assert main(command_line("pairs", tiny_bert, few, tmp_path / "one")) == 2
    assert why in capsys.readouterr().err
    assert not list((tmp_path / "one" / "results").rglob("*pairs*.json"))

    both = [tiny_bert, folders["causal"]]
    assert main(command_line("pairs", both, few, tmp_path / "two")) == 1
    lines = [x for x in capsys.readouterr().err.splitlines() if why in x]
    assert len(lines) == 2  # when it happens, and at the end
    assert all("--model tiny-bert" in line for line in lines)
    results = run_models(both, tmp_path / "two", corpus=str(few), measurements="pairs")
    assert [record.model.name for record in results.others] == ["causal"]
    (reason,) = results.failed.values()
    assert why in reason
    alone = measure("pairs", folders["causal"], few, tmp_path / "three").record
    assert list(alone.rows) == list(results.others[0].rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "asked", "says"),
    [
        ("pairs", "structure", "--measurements structure: it reads sentences, and the corpus few consists of minimal pairs, or texts under several conditions; use --measurements pairs"),
        ("sample", "pairs", "--measurements pairs: not of the corpus sample, since it has no pairs; leave it out, or choose another --corpus."),
        ("pairs", "probes", "--corpus few: it consists of minimal pairs, or texts under several conditions, not of sentences that probes read; use --measurements pairs"),
        ("sample", "completion", "--measurements completion: not of the corpus sample, since it has no contexts"),
        ("facts", "pairs", "--measurements pairs: it reads"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(
    corpus, asked, says, folders, few, tmp_path, capsys
):
    facts = written(tmp_path / "facts.csv", FACTS[:3], [("Oslo", "[X] is in [Y].", "Norway")])
    path = {"pairs": few, "facts": facts}.get(corpus, corpus)
    assert main(command_line(asked, folders["causal"], path, tmp_path)) == 2
    lines = capsys.readouterr().err.splitlines()
    (line,) = (x for x in lines if asked in x or "--corpus" in x)
    assert says in line
