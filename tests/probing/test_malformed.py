"""Stored probes on malformed text, against transformers, numpy and scipy on the same words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plain_passes import hand_vectors
from scipy.stats import spearmanr
from tiny_runs import run

import probes.probing.malformed as malformed
from probes.data.sentence import Corpus, Sentence
from probes.probing.malformed import PERTURBATIONS, Changed, perturbations_of, survivors
from probes.records.parameters import read_parameters
from probes.statistics.bootstrap import resample
from probes.tasks.builtin import tasks
from probes.tasks.task import Example

TEXT = "the old dog sees a cat near house she gave him some books and he read"
WORDS = TEXT.split()
RELATIONS = "nsubj", "obj", "obl", "advmod"


def corpus_of_chains():
    """Chains of words, each of which depends on the one before, which also decides its tag."""
    rng = np.random.default_rng(0)

    def sentence(name, n):
        words = rng.choice(WORDS, n).tolist()
        # A word in three is a name.
        tags = ["N", *(("N", "V", "PROPN")[WORDS.index(word) % 3] for word in words[:-1])]
        return Sentence(
            name,
            "en",
            tuple(words),
            upos=tuple(tags),
            heads=tuple(range(-1, n - 1)),
            deprels=("root", *rng.choice(RELATIONS, n - 1, p=(0.2, 0.2, 0.3, 0.3)).tolist()),
        )

    sizes = {"train": 80, "dev": 20, "test": 40}
    splits = {
        split: tuple(sentence(f"{split}{i}", int(rng.integers(1, 12))) for i in range(n))
        for split, n in sizes.items()
    }
    return Corpus("chains", "1", "MIT", splits)


class ByHand:
    """Examples of words or pairs of words, with what a stored linear probe says of them."""

    def __init__(self, folder, cache, result, name):
        self.result, self.perturb = result, perturbations_of(corpus_of_chains())[name]
        self.parameters = read_parameters(cache, result.key)
        self.sentences = [s for s in corpus_of_chains().splits["test"] if self.perturb(s)]
        changed = [self.perturb(s) for s in self.sentences]
        self.orders = [list(each.order) for each in changed]
        texts = [[list(each.words) for each in changed], [list(s.words) for s in self.sentences]]
        self.vectors = [hand_vectors(folder, each) for each in texts]

    def said(self, layer):
        """By sentence: gold labels, and what is said in malformed and in intact text."""
        of = {
            k.split(".")[1]: v
            for k, v in self.parameters.items()
            if k.startswith(f"layer-0{layer}")
        }
        task = tasks.get(self.result.task.name)
        for number, (sentence, order) in enumerate(zip(self.sentences, self.orders, strict=True)):
            found = []
            for example in task.examples(sentence):
                words = [span[0] for span in (example.span, example.span2) if span]
                if not set(words) <= set(order):
                    continue
                places = [order.index(word) for word in words], words
                outputs = [
                    of["weight"] @ ((each[number][layer][at].ravel() - of["mean"]) * of["scale"])
                    + of["bias"]
                    for each, at in zip(self.vectors, places, strict=True)
                ]
                classes = self.result.examples.classes
                if classes:
                    outputs = [classes[x.argmax()] for x in outputs]
                else:
                    mean, deviation = self.parameters["label-unit"]
                    outputs = [float(x[0]) * deviation + mean for x in outputs]
                found.append((example.label, *outputs))
            if found:
                yield found


@pytest.fixture(scope="module")
def malformed_run(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("malformed")
    settings = {"tasks": ("pos", "distance"), "probes": "linear", "evidence": "malformed"}
    results = run(
        tiny_bert, folder, corpus=corpus_of_chains(), twins=0, quick=False, limit=None, **settings
    )
    return folder, {result.task.name: result for result in results.results}


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_scores_are_those_of_stored_weights_on_vectors_made_by_hand(malformed_run, tiny_bert, name):
    folder, results = malformed_run
    record = results["pos"].evidence["malformed"]
    by_hand = ByHand(tiny_bert, folder / "cache", results["pos"], name)
    for layer in (0, 1, 2):
        right = [
            np.array([[said == gold for said in both] for gold, *both in examples])
            for examples in by_hand.said(layer)
        ]
        malformed, intact, drop = (
            record.rows.at(metric, layer, perturbation=name)
            for metric in ("malformed_score", "intact_score", "malformed_drop")
        )
        every = np.concatenate(right)
        assert record.facts[name] == malformed.n == len(every)
        # Stored vectors are fp16, which may decide one example.
        assert malformed.value == pytest.approx(every[:, 0].mean(), abs=1.1 / len(every))
        assert intact.value == pytest.approx(every[:, 1].mean(), abs=1.1 / len(every))
        assert drop.value == pytest.approx(intact.value - malformed.value)
        # Sentences are drawn, the same ones in both texts; those without a survivor, too.
        sums = np.zeros((40, 3))
        test = [s.id for s in corpus_of_chains().splits["test"]]
        for sentence, each in zip(by_hand.sentences, right, strict=True):
            sums[test.index(sentence.id)] = (*each.sum(0), len(each))
        low, intact_sum, n = (resample(40) @ sums).T
        ends = np.quantile((intact_sum - low) / n, [0.025, 0.975])
        assert drop.interval == pytest.approx(ends, abs=0.01)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_rank_correlations_are_those_of_the_words_that_remain(malformed_run, tiny_bert, name):
    folder, results = malformed_run
    by_hand = ByHand(tiny_bert, folder / "cache", results["distance"], name)
    record = results["distance"].evidence["malformed"]
    for layer in (0, 1, 2):
        for column, metric in ((1, "malformed_score"), (2, "intact_score")):
            rho = [
                spearmanr(*np.array(examples)[:, [0, column]].T).statistic
                for examples in by_hand.said(layer)
                if len({gold for gold, *_ in examples}) > 1
            ]
            row = record.rows.at(metric, layer, perturbation=name)
            assert row.value == pytest.approx(np.mean(rho), abs=0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("short_schedule")
def test_where_nothing_is_changed_nothing_is_lost(tiny_bert, tmp_path, monkeypatch, capsys):
    """Of words, pairs, spans and sets of labels; with linear probes and MLPs."""
    same = {"as it is": lambda s: Changed(s.words, tuple(range(len(s))))}
    monkeypatch.setattr(malformed, "perturbations_of", lambda corpus: same)
    settings = {"evidence": "malformed", "twins": 0, "quick": False, "project": 8}
    names = "pos", "chunking", "depth", "distance", "srl", "roles", "agreement", "length"
    results = run(tiny_bert, tmp_path, tasks=names, **settings)
    measured = [r for r in results.results if "malformed" in r.evidence]
    assert len(measured) == 12
    for result in measured:
        record = result.evidence["malformed"]
        assert record.facts == {
            "test_examples": result.examples.n["test"],
            "as it is": record.facts["test_examples"],
        }
        for row in record.rows:
            if row.metric == "intact_score":
                assert row.value == result.score(row.layer)
            elif row.metric == "malformed_drop":
                assert row.value == pytest.approx(0, abs=5e-3)  # one example on the border
                assert row.interval == pytest.approx((0, 0), abs=0.02)
    said = capsys.readouterr().err
    assert "length · linear · malformed: a malformed sentence need not have the label" in said
    assert "agreement · mlp · malformed of tiny-bert: its examples hide words or bring" in said


def test_which_spans_survive_and_where_they_lie():
    sentences = [Sentence("a", "en", tuple("abcde")), Sentence("b", "en", tuple("xy"))]
    spans = [((0, 1), (3, 5)), ((1, 3), (4, 5)), ((2, 3), (0, 1))]
    examples = [Example("l", *each) for each in spans] + [Example("l", (0, 1), (1, 2))]
    split = SimpleNamespace(sentence=np.array([0, 0, 0, 1]), examples=examples)
    changed = Changed(tuple("deac"), (3, 4, 0, 2))
    kept, texts, spans = survivors(sentences, split, lambda s: changed if s.id == "a" else None)
    assert kept.tolist() == [0, 2]
    assert [text.words for text in texts] == [tuple("deac")] * 2
    assert spans.tolist() == [[[2, 3], [0, 2]], [[3, 4], [2, 3]]]


@pytest.mark.usefixtures("short_schedule")
def test_without_trees_no_arguments_are_dropped_and_without_survivors_there_is_no_record(
    tiny_bert, tmp_path, capsys
):
    splits = {
        split: tuple(replace(s, heads=(), deprels=()) for s in part)
        for split, part in corpus_of_chains().splits.items()
    }
    settings = {"evidence": "malformed", "probes": "linear", "twins": 0, "quick": False}
    given = replace(corpus_of_chains(), splits=splits)
    (result,) = run(
        tiny_bert, tmp_path, corpus=given, tasks=("pos",), limit=None, **settings
    ).results
    record = result.evidence["malformed"]
    assert record.facts["arguments dropped"] == 0
    assert set(record.rows.axes["perturbation"]) == {"shuffled", "cut", "names replaced"}

    single = replace(splits["test"][0], words=("dog",), upos=("N",))
    one_word = replace(given, splits={**splits, "test": (single,)})
    (result,) = run(
        tiny_bert, tmp_path, corpus=one_word, tasks=("pos",), limit=None, **settings
    ).results
    assert "malformed" not in result.evidence
    assert "no test example survives in malformed text" in capsys.readouterr().err
