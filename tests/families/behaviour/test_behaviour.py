"""What language models say, on tiny ones that know a grammar, against plain passes and by hand."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import tiny_runs
import torch
from grammar_models import grammar_models, training_text
from measuring import command_line, measure
from scipy.stats import bootstrap
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    recall_score,
)
from slow_scores import ends_of_words, left_to_right, pseudo_log_likelihood, within_word_l2r
from stratified_kappa import stratified_kappa
from tiny_models import build
from toy_grammar import (
    OTHER,
    PHENOMENA,
    attractors,
    minimal_pairs,
)
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import probes
from probes.cli.main import main
from probes.data.find import find_corpus
from probes.data.items import Item
from probes.data.sentence import Corpus, Sentence
from probes.examples.verb_forms import Question
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import read
from probes.extraction.reading.token_scores import TokenScores, joined_token_scores
from probes.extraction.reading.views import Text, View, view_over
from probes.families.behaviour import WordOptions
from probes.families.behaviour.cloze import verb_answers
from probes.families.behaviour.completion import answer_columns
from probes.families.behaviour.item_scores import text_in
from probes.families.behaviour.lens_collector import LensAnswers
from probes.families.behaviour.pairs import truth
from probes.records.record import Record
from probes.records.record_files import read_arrays
from probes.records.row import Row
from probes.statistics.bootstrap import block
from probes.statistics.of_families.strata import Strata
from probes.tasks.builtin import tasks
from probes.tasks.task import Example

EACH = 40
PLL, L2R, CAUSAL = "pseudo-log-likelihood", "within-word l2r", "left to right"
CLASSES = {"masked": AutoModelForMaskedLM, "causal": AutoModelForCausalLM}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return grammar_models(tmp_path_factory)


@pytest.fixture(scope="module")
def plain(folders: dict[str, Path]) -> dict[str, tuple[Any, Any]]:
    """As transformers loads them."""
    return {
        kind: (CLASSES[kind].from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path))
        for kind, path in folders.items()
    }


def run_models(models: Sequence[Path], folder: Path, **settings: Any) -> probes.Results:
    """A run of several models on a whole corpus."""
    model, *others = models
    return tiny_runs.run(model, folder, beside=others, limit=None, quiet=True, **settings)


def rows(record: Record, metric: str, **axes: Any) -> list[Row]:
    """Those with exactly these places."""
    return [row for row in record.rows if row.metric == metric and dict(row.axes) == axes]


def one(record: Record, metric: str, layer: int | None = None, **axes: Any) -> Row:
    (row,) = (row for row in rows(record, metric, **axes) if row.layer == layer)
    return row


def slow_scores(scoring: str, model: Any, tokenizer: Any, text: str) -> np.ndarray:
    """Scores of all tokens by plain passes; those of causal models with the ends of words."""
    if scoring == CAUSAL:
        ends = ends_of_words(model, tokenizer, text)
        return np.add(left_to_right(model, tokenizer, text), ends)
    slow = pseudo_log_likelihood if scoring == PLL else within_word_l2r
    return np.array(slow(model, tokenizer, text))


def distribution(model: Any, ids: Sequence[int]) -> np.ndarray:
    """Log-probabilities of all tokens at all positions."""
    with torch.no_grad():
        found = model(input_ids=torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)
    return np.asarray(found)


# -- formulas -----------------------------------------------------------------------------

AB = {"a": (1.0, 2.0, 4.0), "b": (3.0, 2.0, 0.5), "no-gap_1": (7.0,)}

FORMULAS: dict[str, float | str] = {
    "(1;%a%) < (1;%b%)": 1,
    "(1;%a%) > (1;%b%)": 0,
    "(2;%a%) < (2;%b%)": 0.5,
    "(2;%a%) > (2;%b%)": 0.5,
    "(*;%a%) > (*;%b%)": 1,  # 7 and 5.5
    "( * ; %no-gap_1% ) < 7.5": 1,
    "1 + 2 * 3 - 4 / 2": 5,
    "(1 + 2) * 3": 9,
    "[1 + 2] * [4 - 1]": 9,
    "8 - 3 - 2": 3,
    "8 / 4 / 2": 1,
    "1 + 1 > 1 & 2 > 3": 0,  # & binds weakest
    "1 > 2 | 2 > 1 & 2 > 1": 1,
    "1 > 2 & 1 > 2 | 2 > 1": 0,  # as 1 > 2 & (1 > 2 | 2 > 1)
    "[1 > 2 & 1 > 2] | 2 > 1": 1,
    "1 > 1 & 2 > 1": 0.5,
    "1 > 1 | 2 > 1": 1,
    "1 > 1 & 1 > 2": 0,
    "[(1;%a%) - (1;%b%)] + [[(3;%a%)] - (3;%b%)]>0": 1,  # −2 + 3.5
    "(3;%a%)-(3;%b%)>3.5": 0.5,
    "(1;%c%) < 1": r"there is no \(1;%c%\)",
    "(4;%a%) < 1": r"there is no \(4;%a%\)",
    "(0;%a%) < 1": r"there is no \(0;%a%\)",
    "(1;%a%) <": "ends before a surprisal",
    "[(1;%a%) < 1": r"'\[' is never closed",
    "1 < 2 3": "has '3' after its end",
    "1 < 2]": r"has '\]' after its end",
    "1 = 2": "cannot be read at ' = 2'",
    "1 < x": "cannot be read at ' x'",
    "": "ends before a surprisal",
}
"""Values of formulas, or the message where a formula is wrong."""


@pytest.mark.parametrize(("formula", "expected"), FORMULAS.items())
def test_formulas_by_hand(formula: str, expected: float | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            truth(formula, AB)
    else:
        assert truth(formula, AB) == truth(f" [ {formula} ] ", AB) == expected


def test_a_suite_of_syntaxgym_by_hand() -> None:
    """Three comparisons, the last of differences."""
    mvrr = (
        "[(5;%reduced_ambig%) > (5;%unreduced_ambig%)] & [(5;%reduced_ambig%) > "
        "(5;%reduced_unambig%)] & [[(5;%reduced_ambig%) - (5;%unreduced_ambig%)] > "
        "[(5;%reduced_unambig%) - (5;%unreduced_unambig%)]]"
    )
    names = "reduced_ambig", "unreduced_ambig", "reduced_unambig", "unreduced_unambig"
    for a, b, c, d in product((1.0, 2.0, 4.0), repeat=4):
        regions = {n: (9, 9, 9, 9, x, 9) for n, x in zip(names, (a, b, c, d), strict=True)}
        parts = [(a, b), (a, c), (a - b, c - d)]
        assert truth(mvrr, regions) == min(0.5 if x == y else float(x > y) for x, y in parts)


# -- intervals ----------------------------------------------------------------------------


def test_intervals_are_those_of_a_plain_bootstrap_of_the_same_draws() -> None:
    """Strata of 21 to 40 items, some of which share a cluster; loops over resamples."""
    rng = np.random.default_rng(0)
    sizes = 21, 40, 30
    stratum = np.repeat(np.arange(3), sizes)
    cluster = np.concatenate(
        [100 * s + np.arange(n) // (1 + (s == 1)) for s, n in enumerate(sizes)]
    )
    order = rng.permutation(len(stratum))
    stratum, cluster = stratum[order], cluster[order]
    values = rng.random((len(stratum), 2)) < (0.3 + 0.2 * stratum[:, None])
    strata = Strata.of([f"c{x}" for x in cluster], [f"s{x}" for x in stratum])
    everything = np.arange(len(stratum))
    groups = [everything, np.flatnonzero(stratum == 1), everything[::2]]
    found = list(strata.means(values.astype(float), groups))
    # Strata and clusters are numbered as they come first.
    drawn: dict[str, np.ndarray] = {}
    for number, s in enumerate(dict.fromkeys(stratum.tolist())):
        own = list(dict.fromkeys(cluster[stratum == s].tolist()))
        for name, column in zip(own, block(len(own), seed=number).T, strict=True):
            drawn[name] = column
    for group, (value, resampled) in zip(groups, found, strict=True):
        assert value.tolist() == pytest.approx(values[group].mean(0).tolist())
        for resample in range(0, 2000, 97):
            weights = np.array([drawn[cluster[i]][resample] for i in group])
            expected = (weights[:, None] * values[group]).sum(0) / weights.sum()
            assert resampled[resample].tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize(("n", "each"), [(60, 1), (120, 2), (80, 80)])
def test_the_spread_is_that_of_a_mean(n: int, each: int) -> None:
    """Also of strata of one or two items, which are drawn as one."""
    values = (np.random.default_rng(each).random(n) < 0.65).astype(float)
    strata = Strata.of([str(i) for i in range(n)], [str(i // each) for i in range(n)])
    ((value, resampled),) = strata.means(values[:, None], [np.arange(n)])
    assert value[0] == values.mean()
    assert resampled.std() == pytest.approx((values.var() / n) ** 0.5, rel=0.06)
    other = bootstrap((values,), np.mean, n_resamples=5000, method="percentile", random_state=0)
    ends = np.quantile(resampled[:, 0], [0.025, 0.975])
    np.testing.assert_allclose(ends, other.confidence_interval, atol=0.03)


def test_strata_of_few_items_or_with_a_cluster_in_common_are_one() -> None:
    names, of = [str(i) for i in range(75)], [0] * 10 + [1] * 25 + [2] * 9 + [3] * 30 + [4]
    strata = Strata.of(names, [f"s{x}" for x in of])
    assert strata.stratum.tolist() == [{0: 0, 1: 1, 2: 0, 3: 2, 4: 0}[x] for x in of]
    # What is drawn does not depend on numbers that no item has.
    some = np.flatnonzero(strata.stratum > 0)
    left = Strata(strata.cluster[some], strata.stratum[some])
    values = np.random.default_rng(3).random((75, 1))
    ((_, whole),) = strata.means(values, [some])
    ((_, alone),) = left.means(values[some], [np.arange(len(some))])
    np.testing.assert_allclose(whole, alone)
    names = [str(i // 2) for i in range(60)]
    strata = Strata.of(names, [str(i % 2) for i in range(60)])
    assert set(strata.stratum.tolist()) == {0}
    assert strata.cluster.tolist() == [i // 2 for i in range(60)]
    few = Strata.of(names[:38], ["s"] * 38)
    ((value, resampled),) = few.means(np.ones((38, 1)), [np.arange(38)])
    assert value.tolist() == [1]
    assert np.isnan(resampled).all()  # 19 clusters


# -- pairs --------------------------------------------------------------------------------

SAME = ["The cooks slept.", "Birds sing.", "She reads the letters."]
LONGER = ["The cooks near the bridge ate.", "The judges near the bridge ate."]
"""Less likely than their first two words and the last one, but not by the token."""


def table(path: Path, given: Sequence[Mapping[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, given[0])
        writer.writeheader()
        writer.writerows(given)
    return path


@pytest.fixture(scope="module")
def pairs_run(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Pairs of the grammar, and three of equal sentences, measured of both models and twins."""
    out = tmp_path_factory.mktemp("pairs")
    pairs = minimal_pairs(EACH, seed=41, seen=set(training_text()))
    other = {"UID": "same", "linguistics_term": "none"}
    pairs += [{"sentence_good": x, "sentence_bad": x, **other} for x in SAME]
    other = {"UID": "shorter", "linguistics_term": "none"}
    pairs += [
        {"sentence_good": x, "sentence_bad": " ".join(np.array(x.split())[[0, 1, -1]]), **other}
        for x in LONGER
    ]
    corpus = table(out / "pairs.csv", pairs)
    models = [folders["masked"], folders["causal"]]
    results = run_models(models, out, corpus=str(corpus), twins=1, measurements="pairs")
    records = {record.model.name: record for record in results.others}
    arrays = {record.model.name: read_arrays(path) for path, record in results.measured.items()}
    return SimpleNamespace(pairs=pairs, corpus=corpus, records=records, arrays=arrays, out=out)


def scales_of(record: Record) -> list[str]:
    return [str(record.facts[f"scale {i}"]) for i in range(1, 9) if f"scale {i}" in record.facts]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_pairs_of_the_grammar_are_told_apart_and_not_by_random_twins(
    kind: str, pairs_run: Any
) -> None:
    phenomena = {p["UID"]: p["linguistics_term"] for p in pairs_run.pairs}
    for name, low, high in ((kind, 0.95, 1), (f"random:{kind}", 0.15, 0.85)):
        record = pairs_run.records[name]
        for scoring in (PLL, L2R) if kind == "masked" else (CAUSAL,):
            axes = {"scoring": scoring, "per": "text"}
            for uid in PHENOMENA:
                at = {"paradigm": uid, "phenomenon": phenomena[uid], **axes}
                row = one(record, "pair_accuracy", **at)
                assert row.n == EACH
                assert low <= row.value <= high
                if row.low is not None:  # of a share of 40, nearly the normal interval
                    half = 1.96 * (row.value * (1 - row.value) / EACH) ** 0.5
                    assert row.interval == pytest.approx(
                        (row.value - half, row.value + half), abs=0.04
                    )
            if name != kind:
                value = one(record, "pair_accuracy", **axes).value
                assert value == pytest.approx(0.5, abs=0.12)
        same = [row for row in record.rows if row.axes.get("paradigm") == "same"]
        assert {(row.value, row.low, row.high, row.n) for row in same} == {(0.5, None, None, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_accuracy_is_that_of_plain_passes(kind: str, pairs_run: Any, plain: Any) -> None:
    record, values = pairs_run.records[kind], pairs_run.arrays[kind]["values"]
    twin = pairs_run.arrays[f"random:{kind}"]["values"]
    assert values.shape == (4 if kind == "masked" else 2, 5 * EACH + 5)
    uids = np.array([pair["UID"] for pair in pairs_run.pairs])
    for scale, name in enumerate(scales_of(record)):
        scoring, per = name.removeprefix("pair_accuracy, scoring ").split(", per ")
        take = np.sum if per == "text" else np.mean
        for i in [*range(0, 5 * EACH, 8), *range(5 * EACH, 5 * EACH + 5)]:
            good, bad = (
                take(slow_scores(scoring, *plain[kind], pairs_run.pairs[i][x]))
                for x in ("sentence_good", "sentence_bad")
            )
            assert values[scale, i] == (1 + np.sign(round(good - bad, 5))) / 2
        axes = {"scoring": scoring, "per": per}
        assert one(record, "pair_accuracy", **axes).value == pytest.approx(values[scale].mean())
        for uid in PHENOMENA:
            (row,) = (
                row
                for row in pairs_run.records[f"random:{kind}"].rows
                if dict(row.axes).items() >= {"paradigm": uid, **axes}.items()
            )
            assert row.value == pytest.approx(twin[scale, uids == uid].mean())
        means = [values[scale, uids == uid].mean() for uid in dict.fromkeys(uids)]
        mean = one(record, "mean_of_paradigms", **axes)
        assert (mean.value, mean.n) == (pytest.approx(np.mean(means)), 7)


@pytest.mark.slow
def test_pairs_that_become_equal_when_cut_do_not_count(
    folders: dict[str, Path], plain: Any, tmp_path: Path
) -> None:
    pairs = [
        ("The cooks are talking.", "The cooks are talk."),
        ("The cook near the nurses is talking.", "The cook near the nurses are talking."),
        ("A cook is talking.", "Cooks a is talking."),
    ]
    path = tmp_path / "pairs.csv"
    lines = ["sentence_good,sentence_bad", *map(",".join, pairs)]
    path.write_text("\n".join(lines), encoding="utf-8")
    options = {"pairs": {"malformed": True}}
    record = measure("pairs", folders["causal"], path, tmp_path, options=options).record
    assert "2 of 3 items do not count when cut: their texts become equal." in (record.notes)
    axes = {"scoring": CAUSAL, "per": "text", "perturbation": "cut"}
    cut = one(record, "pair_accuracy", **axes)
    good, bad = (slow_scores(CAUSAL, *plain["causal"], x).sum() for x in ("A cook", "Cooks a"))
    assert (cut.value, cut.n) == (float(good > bad), 1)
    whole = [slow_scores(CAUSAL, *plain["causal"], text).sum() for text in pairs[2]]
    lost = one(record, "lost", of="pair_accuracy", **axes)
    assert (lost.value, lost.n) == (float(whole[0] > whole[1]) - float(good > bad), 1)


# -- completion ---------------------------------------------------------------------------

SUBJECTS = ("cook", "nurse", "judge", "farmer", "guest", "teacher")


def facts() -> list[dict[str, str]]:
    """Verbs that agree and verbs that do not, and one that has several pieces."""
    made = []
    for noun, number in product(SUBJECTS, ("", "s")):
        template = f"The [X] near the {'nurse' if number else 'nurses'} [Y] talking."
        for answer in ("is", "are", "was", "were", "does", "watches"):
            row = {"subject": noun + number, "template": template, "object": answer}
            made.append({**row, "relation": f"{answer} {'plural' if number else 'singular'}"})
    return made


@pytest.mark.slow
def test_completions_are_the_likeliest_words_of_a_plain_pass(
    folders: dict[str, Path], plain: Any, tmp_path: Path
) -> None:
    model, tokenizer = plain["masked"]
    path = tmp_path / "facts.jsonl"
    path.write_text("\n".join(map(json.dumps, facts())))
    record = measure("cloze", folders["masked"], path, tmp_path).record
    assert record.measurement == "completion"
    ranks: dict[str, list[int]] = {}
    for fact in facts():
        answer = tokenizer(fact["object"], add_special_tokens=False)["input_ids"]
        if len(answer) > 1:
            continue
        text = fact["template"].replace("[X]", fact["subject"]).replace("[Y]", "[MASK]")
        ids = tokenizer(text)["input_ids"]
        log_p = distribution(model, ids)[ids.index(tokenizer.mask_token_id)]
        rank = int((log_p > log_p[answer[0]]).sum())
        ranks.setdefault(fact["relation"], []).append(rank)
    assert len(ranks) == 10
    every = np.concatenate(list(map(np.array, ranks.values())))
    assert len(np.unique(every)) > 5
    for depth in (1, 5, 10):
        whole = one(record, "completion_accuracy", likeliest=depth)
        assert (whole.value, whole.n) == (pytest.approx((every < depth).mean()), len(every))
        for relation, its in ranks.items():
            row = one(record, "completion_accuracy", likeliest=depth, paradigm=relation)
            assert row.value == pytest.approx(np.mean([rank < depth for rank in its]))
    assert 0 < (every < 1).mean() < (every < 10).mean() <= 1
    assert any("12 of 72 items have no answer of one token" in note for note in record.notes)


def context(before: str, good: str, *rivals: str, after: str = " talking.") -> Item:
    texts = {name: (before, f" {name}", after) for name in (good, *rivals)}
    return Item(before, "contexts", "p", texts, target=1, answers=(good,), good=good, rivals=rivals)


@pytest.mark.slow
def test_the_better_word_is_compared_with_each_rival_and_with_all(
    folders: dict[str, Path], plain: Any
) -> None:
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

    def p(item: Item, word: str) -> float:
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
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = replace(context("The cook near the nurses", "is", "are", "were"), phenomenon="expected")
    two = [context(noun, "is", "are") for noun in ("The cook", "The nurse")]
    plain, negated = replace(two[0], phenomenon="plain"), replace(two[1], phenomenon="negated")
    items = [three, plain, replace(negated, answers=())]
    items = [replace(item, paradigm=item.phenomenon) for item in items]
    path, its = tmp_path / "facts.csv", iter(items)
    path.write_text("subject,template,object\n" + "x,[X] [Y],y\n" * 3, encoding="utf-8")
    monkeypatch.setattr("probes.data.item_suites._fact", lambda *row: next(its))
    record = measure("cloze", folders["masked"], path, tmp_path).record
    for metric in ("completion_accuracy", "sensitivity", "sensitivity_chance"):
        assert not [x for x in record.rows if x.metric == metric and not {*x.axes} - _SCALES]
    for name, chance in (("expected", 1 / 3), ("plain", 1 / 2), ("negated", 1 / 2)):
        at = {"phenomenon": name, "threshold": 0.0}
        assert one(record, "sensitivity_chance", **at).value == pytest.approx(chance)
        assert len(rows(record, "sensitivity", **at)) == 1
        asked = rows(record, "completion_accuracy", phenomenon=name, likeliest=1)
        assert len(asked) == (name != "negated")
    against = {"phenomenon": "expected", "threshold": 0.0, "rival": "were"}
    assert one(record, "sensitivity_chance", **against).value == 0.5


# -- agreement: cloze and lens ------------------------------------------------------------


@pytest.mark.parametrize("word_ends", [True, False])
def test_forms_are_compared_with_or_without_the_ends_of_words(word_ends: bool) -> None:
    model, tokenizer = build("gemma3", "Gemma3ForCausalLM")
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    context: Any = SimpleNamespace(
        options=WordOptions(word_ends=word_ends),
        read=lambda view, collector: read(view, collector, encoder, 64),
    )
    texts = [
        Text(("the keeper", f" {x}", " boats."), (1, 2), written=True) for x in ("sees", "see")
    ]
    found = verb_answers(context, [Question(*texts)])
    scores = []
    for text in texts:
        whole = "".join(text.words)
        gains = np.array(ends_of_words(model, tokenizer, whole)) * word_ends
        (pieces,) = encoder.split([text])
        own = slice(*pieces.bounds[1:3])
        scores.append((left_to_right(model, tokenizer, whole) + gains)[own].sum())
        assert not word_ends or abs(gains[own].sum()) > 0.01
    assert found.log_odds[0] == pytest.approx(scores[0] - scores[1], abs=1e-4)


@pytest.fixture(scope="module")
def agreement() -> Corpus:
    """Few training sentences, so that probes make mistakes."""
    return attractors(train=60)


@pytest.fixture(scope="module")
def answered(
    folders: dict[str, Path], agreement: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Probes of agreement and tags, with cloze and lens, of both models."""
    out = tmp_path_factory.mktemp("cloze")
    settings = {"corpus": agreement, "tasks": "agreement,pos", "probes": "linear"}
    found = run_models(
        [folders["masked"], folders["causal"]], out, **settings, measurements=("cloze", "lens")
    )
    assert not found.failed
    results = {(r.model.name, r.task.name): r for r in found}
    paths = {(r.model.name, r.task.name): path for path, r in found.found.items()}
    return SimpleNamespace(results=results, paths=paths, corpus=agreement, out=out)


class Verb(NamedTuple):
    """A verb to fill in; `alike` if its two forms have equally many tokens."""

    sentence: Sentence
    place: int
    label: str
    own: str
    other: str
    alike: bool


def verbs_of(corpus: Corpus, split: str, tokenizer: Any) -> list[Verb]:
    found = []
    for s in corpus.splits[split]:
        for x in tasks.get("agreement").examples(s):
            if isinstance(x, Example) and x.hide is not None:
                own, other = s.words[x.hide], other_form(corpus, s, x.hide)
                counts = {len(tokenizer(f" {form}")["input_ids"]) for form in (own, other)}
                alike = bool(other) and len(counts) == 1
                found.append(Verb(s, x.hide, str(x.label), own, other, alike))
    return found


def other_form(corpus: Corpus, s: Sentence, verb: int) -> str:
    """The form of the same verb and tense with the other number, if train has it."""
    feats = s.feats[verb]
    wanted = s.lemmas[verb], feats["Tense"], OTHER[feats["Number"]]
    found = {
        each.words[i]
        for each in corpus.splits["train"]
        for i, its in enumerate(each.feats)
        if its.get("VerbForm") == "Fin" and (each.lemmas[i], its["Tense"], its["Number"]) == wanted
    }
    return found.pop() if found else ""


def log_odds_of(kind: str, plain: Any, verb: Verb) -> float:
    """Log-odds of the right form, by plain passes over the whole texts."""
    model, tokenizer = plain[kind]
    before = "".join(verb.sentence.written[: verb.place])
    after = "".join(verb.sentence.written[verb.place + 1 :])
    first = len(tokenizer(before, add_special_tokens=False)["input_ids"])
    scores = []
    for form in (verb.own, verb.other):
        n = len(tokenizer(f" {form}", add_special_tokens=False)["input_ids"])
        scoring = L2R if kind == "masked" else CAUSAL
        whole = slow_scores(scoring, model, tokenizer, f"{before} {form}{after}")
        scores.append(float(whole[first : first + n].sum()))
    return scores[0] - scores[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_models_of_the_grammar_fill_in_the_right_verb(kind: str, answered: Any, plain: Any) -> None:
    record = answered.results[kind, "agreement"].evidence["cloze"]
    verbs = verbs_of(answered.corpus, "test", plain[kind][1])
    used = read_arrays(evidence_path(answered, kind, "agreement", "cloze"))["used"]
    alike = np.array([verb.alike for verb in verbs])
    assert (~np.isnan(used)).tolist() == alike.tolist()
    for verb, value in list(zip(verbs, used.tolist(), strict=True))[::5]:
        if verb.alike:
            assert value == (1 + np.sign(log_odds_of(kind, plain, verb))) / 2
    without = sum(not verb.other for verb in verbs)
    longer = int((~alike).sum()) - without
    assert min(without, longer) > 0
    assert record.facts == {
        "examples": int(alike.sum()),
        "left out, without a form of the other number in train": without,
        "left out, with forms of different numbers of tokens": longer,
    }
    told = f"{longer} of {len(used)} verbs are left out: with forms of different numbers of tokens."
    assert told in record.notes
    labels, used = [verb.label for verb in verbs if verb.alike], used[alike]
    train = [verb.label for verb in verbs_of(answered.corpus, "train", plain[kind][1])]
    commonest = max(sorted(set(train)), key=train.count)
    majority = one(record, "cloze_accuracy", baseline="majority")
    assert majority.value == pytest.approx(labels.count(commonest) / len(labels))
    whole = one(record, "cloze_accuracy")
    assert (whole.value, whole.n) == (pytest.approx(used.mean()), len(used))
    assert (one(record, "cloze_accuracy", group="1+ attractors").value or 0) > 0.95  # as trained
    for label in ("Sing", "Plur"):
        its = used[np.array(labels) == label]
        row = one(record, "cloze_accuracy", group=f"verb {label}")
        assert (row.value, row.n) == (pytest.approx(its.mean()), len(its))


def evidence_path(answered: Any, kind: str, task: str, name: str) -> Path:
    own = answered.paths[kind, task].parent
    (path,) = own.glob(f"{task}-linear-{name}-*.json")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_cells_are_those_of_stored_predictions(kind: str, answered: Any, plain: Any) -> None:
    result = answered.results[kind, "agreement"]
    record = result.evidence["cloze"]
    log_odds = read_arrays(evidence_path(answered, kind, "agreement", "cloze"))["log_odds"]
    asked, verbs = ~np.isnan(log_odds), verbs_of(answered.corpus, "test", plain[kind][1])
    arrays = read_arrays(answered.paths[kind, "agreement"])
    gold = np.array([result.examples.classes.index(verb.label) for verb in verbs])[asked]
    singular = np.array([verb.label == "Sing" for verb in verbs])[asked]
    log_odds = log_odds[asked] * np.where(singular, 1, -1)
    threshold = one(record, "answer_threshold").value
    cut = (log_odds > threshold) == singular
    weights = 1 / np.where(singular, singular.sum(), (~singular).sum())
    for axes, said in (({}, log_odds > 0), ({"threshold": "train"}, log_odds > threshold)):
        row = one(record, "cloze_accuracy", group="both numbers alike", **axes)
        assert row.value == pytest.approx(balanced_accuracy_score(singular, said))
        plural = one(record, "cloze_accuracy", group="verb Plur", **axes)
        assert plural.value == pytest.approx(recall_score(singular, said, pos_label=False))
    used = one(record, "used")
    assert used.value == row.value
    for layer, predicted in zip(result.layers, arrays["predicted"][:, 0], strict=True):
        own = predicted[asked]
        right = own == gold
        assert one(record, "decodable", layer).value == pytest.approx(
            balanced_accuracy_score(gold, own)
        )
        shares = confusion_matrix(right, cut, sample_weight=weights, labels=[False, True]) / 2
        names = (("neither", "used_only"), ("decodable_only", "both"))
        found = [[one(record, name, layer).value for name in each] for each in names]
        np.testing.assert_allclose(found, shares)
        gap = one(record, "decodable_less_used", layer)
        assert gap.value == pytest.approx(balanced_accuracy_score(gold, own) - used.value)
        assert gap.n == len(cut)
        kappa = one(record, "error_consistency", layer).value
        if kappa is None:
            assert right.all()
            assert cut.all()
        else:
            assert kappa == pytest.approx(stratified_kappa(right, cut, singular))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_threshold_has_equal_recalls_on_train_by_plain_passes(
    kind: str, answered: Any, plain: Any
) -> None:
    verbs = [x for x in verbs_of(answered.corpus, "train", plain[kind][1]) if x.alike]
    singular = np.array([verb.label == "Sing" for verb in verbs])
    log_odds = np.array([log_odds_of(kind, plain, x) for x in verbs]) * np.where(singular, 1, -1)
    found = one(answered.results[kind, "agreement"].evidence["cloze"], "answer_threshold")
    assert found.n == len(log_odds)
    ordered = np.sort(log_odds)
    tried = [0.0, *(ordered[1:] + ordered[:-1]) / 2]
    recalls = [recall_score(singular, log_odds > t, average=None) for t in tried]
    unlike = [abs(one - other) for one, other in recalls]
    best = min((t for t, x in zip(tried, unlike, strict=True) if x == min(unlike)), key=abs)
    assert found.value == pytest.approx(best, abs=1e-3)


# -- the lens -----------------------------------------------------------------------------


def hidden(model: Any, ids: Sequence[int]) -> list[torch.Tensor]:
    """The states of layers 0 to L at all positions, as transformers lists them."""
    with torch.no_grad():
        found = model(input_ids=torch.tensor([list(ids)]), output_hidden_states=True)
    return [state[0] for state in found.hidden_states]


def answers_of_head(kind: str, model: Any, state: torch.Tensor, layer: int) -> np.ndarray:
    """The logits that the head gives for a state of a layer, after the norm that it expects."""
    with torch.no_grad():
        if kind == "masked":
            found = model.cls(state[None])[0]
        else:  # the last state that transformers lists has gone through the norm
            last = layer == model.config.n_layer
            found = model.lm_head(state if last else model.transformer.ln_f(state))
    return np.asarray(found.double())


UNKNOWN = "\u4e2d"
"""A word that a tiny WordPiece has no piece for, and a byte-level vocabulary several."""


@pytest.mark.parametrize("kind", ["masked", "causal"])
@pytest.mark.parametrize("after", [False, True])
def test_the_lens_is_the_head_on_the_states_of_every_layer(kind: str, after: bool) -> None:
    """Random models, whose norms are not the identity; words of one piece and of several."""
    family, kind_of = {
        "masked": ("bert", "BertForMaskedLM"),
        "causal": ("gpt2", "GPT2LMHeadModel"),
    }[kind]
    model, tokenizer = build(family, kind_of)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "ln_f" in name or "LayerNorm" in name:
                weight.add_(
                    0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
                )
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    words = ("she", "counts", "the", "lightkeepers", "boats")
    texts = [Text(words, (0, 5)), Text(words[1:], (1, 4)), Text(words, (2, 3), mask=2)]
    texts = texts[: 3 if kind == "masked" else 2]
    candidates = [
        w for w in ("the", "light", "boats", "that", "of", "she") if len(spelt(encoder, w)) == 1
    ]
    assert len(candidates) >= 3
    answers = [
        {candidates[0]: 1.0},
        {candidates[1]: 0.75, candidates[2]: 0.5},
        {"lightkeepers": 0.5, UNKNOWN: 0.5},
    ]
    collector = LensAnswers((0, 1, 2), answers, after=after)
    ((shard, found),) = read(View("plain", tuple(texts)), collector, encoder)
    assert collector.has_token == [True, True, False]
    tokens = [spelt(encoder, word)[0] for word in candidates[:3]]
    checked = 0
    for text, start in zip(texts, shard.starts, strict=True):
        (pieces,) = encoder.split([text])
        ids = [*encoder.words.prefix, *pieces.ids.tolist(), *encoder.words.suffix]
        states = hidden(model, ids)
        for word in range(*text.kept_span):
            first, end = (
                len(encoder.words.prefix) + int(x) for x in pieces.bounds[word : word + 2]
            )
            place = end - 1 if after else first - (kind == "causal")
            row = found["answers"][int(start) + word - text.kept_span[0]].numpy()
            if place < 0:
                assert np.isnan(row).all()
                continue
            for layer in range(3):
                logits = answers_of_head(kind, model, states[layer][place], layer)[tokens]
                p = np.exp(logits - logits.max())
                p /= p.sum()
                expected = [p[0], 0.75 * p[1] + 0.5 * p[2], 0]
                np.testing.assert_allclose(row[layer], expected, atol=1e-5)
                checked += 1
    assert checked > 15


def spelt(encoder: Encoder, word: str) -> list[int]:
    (pieces,) = encoder.split([Text((word,), (0, 1))])
    return [int(x) for x in pieces.ids]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_readable_is_what_plain_states_say_of_the_two_forms(
    kind: str, answered: Any, plain: Any, folders: dict[str, Path]
) -> None:
    model, tokenizer = plain[kind]
    words = load_encoder(find_model(str(folders[kind])), device="cpu").words
    record = answered.results[kind, "agreement"].evidence["lens"]
    right: dict[int, list[bool]] = {}
    probe = answered.results[kind, "agreement"]
    arrays = read_arrays(answered.paths[kind, "agreement"])
    known = []
    for s, verb, _, own, contrary, alike in verbs_of(answered.corpus, "test", tokenizer):
        (one_, other) = (words([Text((form or own,), (0, 1))])[0].ids for form in (own, contrary))
        known.append(alike and len(one_) == len(other) == 1)
        if not known[-1]:
            continue
        if kind == "masked":
            (pieces,) = words([Text(s.words, (verb, verb + 1), mask=verb)])
            ids = [tokenizer.cls_token_id, *pieces.ids.tolist(), tokenizer.sep_token_id]
            place = ids.index(tokenizer.mask_token_id)
        else:
            (pieces,) = words([Text(s.words[:verb], (verb - 1, verb))])
            ids = pieces.ids.tolist()
            place = len(ids) - 1
        for layer, state in enumerate(hidden(model, ids)):
            logits = answers_of_head(kind, model, state[place], layer)
            right.setdefault(layer, []).append(bool(logits[one_[0]] > logits[other[0]]))
        if len(known) % 20 == 1:  # the last layer's answer is the model's own
            own_logits = distribution(model, ids)[place]
            assert (own_logits[one_[0]] > own_logits[other[0]]) == right[layer][-1]
    assert record.facts["examples"] == sum(known) == len(right[0])
    gold = arrays["gold"][known]
    for layer, its in right.items():
        value = balanced_accuracy_score(gold, np.where(its, gold, 1 - gold))
        assert one(record, "readable", layer).value == pytest.approx(value)
        said = arrays["predicted"][probe.layers.index(layer), 0][known]
        value = balanced_accuracy_score(gold, said)
        assert one(record, "decodable", layer).value == pytest.approx(value)
    assert len(set(map(np.mean, right.values()))) > 1


@pytest.mark.slow
def test_a_label_is_read_from_the_words_that_mostly_have_it(answered: Any, plain: Any) -> None:
    """Tags of words in view, of the masked model: by hand on the first sentences."""
    model, tokenizer = plain["masked"]
    result = answered.results["masked", "pos"]
    record, classes = result.evidence["lens"], result.examples.classes
    counts: dict[str, dict[str, int]] = {}
    for s in answered.corpus.splits["train"]:
        for word, tag in zip(s.words, s.upos, strict=True):
            counts.setdefault(word, dict.fromkeys(classes, 0))[tag] += 1
    token = {w: tokenizer(w, add_special_tokens=False)["input_ids"] for w in counts}
    single = {w: ids[0] for w, ids in token.items() if len(ids) == 1}
    vocabulary = sorted(set(single.values()))
    weights = np.zeros((len(vocabulary), len(classes)))
    for word, i in single.items():
        total = sum(counts[word].values())
        share = [counts[word][tag] / total for tag in classes]
        weights[vocabulary.index(i)] += share
    right: dict[int, list[bool]] = {0: [], 1: [], 2: []}
    for s in answered.corpus.splits["test"]:
        coded = tokenizer([list(s.words)], is_split_into_words=True)
        owners = coded.word_ids(0)
        states = hidden(model, coded["input_ids"][0])
        for word, tag in enumerate(s.upos):
            for layer in right:
                logits = answers_of_head("masked", model, states[layer][owners.index(word)], layer)
                p = np.exp(logits[vocabulary] - logits[vocabulary].max())
                right[layer].append(classes[int((p / p.sum() @ weights).argmax())] == tag)
    for layer, its in right.items():
        assert one(record, "readable", layer).value == pytest.approx(np.mean(its), abs=1e-9)
    assert len(set(map(np.mean, right.values()))) > 1
    gold = [tag for s in answered.corpus.splits["test"] for tag in s.upos]
    train = [tag for s in answered.corpus.splits["train"] for tag in s.upos]
    commonest = max(set(train), key=train.count)
    majority = one(record, "readable", baseline="majority")
    assert majority.value == pytest.approx(gold.count(commonest) / len(gold))


# -- what cannot be asked -----------------------------------------------------------------


@pytest.fixture(scope="module")
def few(pairs_run: Any) -> Path:
    return table(pairs_run.out / "few.csv", pairs_run.pairs[::5])


@pytest.mark.slow
def test_a_model_without_a_head_is_left_out_and_the_other_is_measured(
    tiny_bert: Path, folders: dict[str, Path], few: Path, tmp_path: Path, capsys: Any
) -> None:
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
    corpus: str,
    asked: str,
    says: str,
    folders: dict[str, Path],
    few: Path,
    tmp_path: Path,
    capsys: Any,
) -> None:
    (tmp_path / "facts.csv").write_text("subject,template,object\nOslo,[X] is in [Y].,Norway\n")
    path = {"pairs": few, "facts": tmp_path / "facts.csv"}.get(corpus, corpus)
    assert main(command_line(asked, folders["causal"], path, tmp_path)) == 2
    lines = capsys.readouterr().err.splitlines()
    (line,) = (x for x in lines if asked in x or "--corpus" in x)
    assert says in line


@pytest.mark.real_data
def test_syntaxgym_itself(real_data: Path, tmp_path: Path) -> None:
    source = find_corpus("syntaxgym", data_dir=real_data, cache_dir=tmp_path, offline=True)
    corpus = source.load()
    circuits = {item.paradigm: item.phenomenon for item in corpus.items}
    assert len(circuits) == 34
    assert Counter(circuits.values()) == {
        "Agreement": 3,
        "Licensing": 10,
        "Garden-path effects": 7,
        "Gross syntactic state": 4,
        "Center embedding": 2,
        "Long-distance dependencies": 8,
    }
    # All formulas can be read, and none holds where all surprisals are equal.
    for item in corpus.items:
        assert item.predictions
        even = {condition: [1.0] * len(texts) for condition, texts in item.texts.items()}
        assert {truth(formula, even) for formula in item.predictions} <= {0.0, 0.5}
