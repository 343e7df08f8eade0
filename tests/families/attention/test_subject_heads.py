"""Attention to the subject or another noun: cases by hand, planted heads, and transformers."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from head_numbers import HeadNumbers, PlainMaps
from measuring import measure
from planted_heads import at_random, compute

from probes.data.items import minimal_pair
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.families.attention.subject_heads import pair_questions, share_and_confusion, verbs
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement

SING, PLUR = {"Number": "Sing"}, {"Number": "Plur"}
FINITE = {"VerbForm": "Fin", "Tense": "Pres"}


def treebank(text, heads, deprels):
    """Words with tags: ``key.N.s`` is a singular noun, ``are.V.p`` a finite plural verb."""
    words, tags, feats = [], [], []
    for word in text.split():
        form, tag, number = (*word.split("."), "", "")[:3]
        words.append(form)
        tags.append({"N": "NOUN", "V": "AUX", "": "X"}[tag])
        of = {"s": SING, "p": PLUR, "": {}}[number]
        feats.append({**of, **FINITE} if tag == "V" else of)
    heads = tuple(x - 1 for x in heads)
    layers = {"feats": tuple(feats), "heads": heads, "deprels": tuple(deprels)}
    return Sentence("s", "en", tuple(words), tuple(tags), **layers)


KEYS = treebank(
    "the keys.N.p to the cabinet.N.s are.V.p here",
    [2, 7, 5, 5, 2, 7, 0],
    ["det", "nsubj", "case", "det", "nmod", "cop", "root"],
)


def cases(sentence):
    return [
        (x.features, [sentence.words[one] + ">" + sentence.words[to] for (one, _), (to, _) in x.links])
        for x in verbs(sentence)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "heads", "deprels", "expected"),
    [
        (
            "keys.N.p to boxes.N.p of wood.N.s are.V.p here",
            [7, 3, 1, 5, 3, 7, 0],
            "nsubj case nmod case nmod cop root",
            [(("verb, attractor",), ["are>keys", "are>wood"])],
        ),
        (
            "keys.N.p to wood.N.s boxes.N.p are.V.p here",
            [6, 4, 4, 1, 6, 0],
            "nsubj case compound nmod cop root",
            [(("verb, same number",), ["are>keys", "are>boxes"])],
        ),
        # No noun between them; one without a number; a conjunct of the subject.
        ("keys.N.p are.V.p here", [3, 3, 0], "nsubj cop root", []),
        ("keys.N.p to wood.N are.V.p here", [5, 3, 1, 5, 0], "nsubj case nmod cop root", []),
        ("keys.N.p and box.N.s are.V.p here", [5, 3, 1, 5, 0], "nsubj cc conj cop root", []),
        # The verb does not agree with its subject.
        ("key.N.s to boxes.N.p are.V.p here", [5, 3, 1, 5, 0], "nsubj case nmod cop root", []),
    ],
)
def test_the_last_noun_between_is_an_attractor_if_its_number_differs(
    text, heads, deprels, expected
):
    assert cases(treebank(text, heads, deprels.split())) == expected


SUBJECTS = "boat", "keeper", "light", "vase"


def item(paradigm, good, bad, number=0):
    return minimal_pair(f"{paradigm}-{number}", f"en.{paradigm}", good, bad, "en")


def items(*items):
    return Corpus("pairs", "1", "", {"train": (), "dev": (), "test": ()}, items=items)


@pytest.mark.parametrize(
    ("paradigm", "good", "bad", "links", "features"),
    [
        (
            "prep_anim",
            "the pilots to the side of the taxi driver laugh",
            "the pilots to the side of the taxi driver laughs",
            ["laugh>pilots", "laugh>driver"],
            ("verb, attractor",),
        ),
        (
            "obj_rel_no_comp_across_anim",
            "the taxi driver the guard likes is old",
            "the taxi driver the guard likes are old",
            ["is>driver", "is>guard"],
            ("verb, same number",),
        ),
        (
            "obj_rel_within_anim",
            "the guards that the taxi driver likes laugh",
            "the guards that the taxi driver like laugh",
            ["likes>driver", "likes>guards"],
            ("verb, both orders",),
        ),
        (
            "reflexives_across",
            "the pilot that the guards like hurt herself",
            "the pilot that the guards like hurt themselves",
            ["herself>pilot", "herself>guards"],
            ("reflexive, attractor", "reflexive, both orders"),
        ),
    ],
)
def test_the_paradigm_says_which_noun_is_the_subject(paradigm, good, bad, links, features):
    asked = pair_questions(items(item(paradigm, good, bad)))
    ((sentence, (question,)),) = asked["dev"]
    assert question.features == features
    words = sentence.words
    assert [f"{words[x[0]]}>{words[y[0]]}" for x, y in question.links] == links


def test_other_paradigms_are_left_out_and_no_subject_is_in_both_halves():
    said = "the guard said the pilots laugh"
    assert pair_questions(items(item("sent_comp", said, f"{said}s"))) == {"dev": [], "test": []}
    with pytest.raises(NotServedError, match="no words to link"):
        get_measurement("subject_heads_of_pairs").reads(items(), None)
    asked = pair_questions(items(*made_pairs()))
    subjects = {split: {s.words[1].removesuffix("s") for s, _ in x} for split, x in asked.items()}
    assert subjects == {"dev": {"boat", "light"}, "test": {"keeper", "vase"}}


def made_pairs():
    nouns = "bird", "letter", "door", "fleet", "teacher", "window"
    for subject, other, one, two in product(SUBJECTS, nouns, ("", "s"), ("", "s")):
        near = f"the {subject}{one} near the {other}{two}"
        good, bad = ("run", "runs") if one else ("runs", "run")
        name = f"{subject}{one} {other}{two}"
        yield item("prep_anim", f"{near} {good}", f"{near} {bad}", name)
        like = f"the {subject}{one} that the {other}{two} like hurt"
        good, bad = ("themselves", "itself") if one else ("itself", "themselves")
        yield item("reflexives_across", f"{like} {good}", f"{like} {bad}", name)


def test_share_and_confusion_by_hand():
    weights = np.array([[[0.6, 0.25]], [[0.2, 0.25]]])  # (links, layers, heads + 1)
    share, confusion = share_and_confusion(None, weights)
    assert share.tolist() == [[pytest.approx(0.75), 0.5]]
    assert confusion.tolist() == [[pytest.approx(-np.log2(0.75)), 1.0]]
    unseen = np.array([[[0.0, 0.0]], [[0.5, 0.5]]])
    assert np.isnan(share_and_confusion(None, unseen)).all()
    none = np.array([[[0.0, 0.25]], [[0.5, 0.25]]])
    assert np.isfinite(share_and_confusion(None, none)).all()


def to_subject(sentence):
    """Three to one for the subject, from its verb."""
    maps = at_random(sentence, 5)
    place = sentence.words.index("are")
    maps[place] = 0.0
    maps[place, 1], maps[place, 4] = 0.75, 0.25
    return maps


def test_a_planted_head_is_found():
    splits = {
        split: tuple(
            replace(KEYS, id=f"{split}{i}", words=(f"{split}{i}", *KEYS.words[1:]), document=f"d{i % 30}")
            for i in range(60)
        )
        for split in ("train", "dev", "test")
    }  # fmt: skip
    of = Corpus("toy", "1", "", splits)

    def maps(s):
        return np.array([[at_random(s, 1), at_random(s, 2)], [to_subject(s), at_random(s, 3)]])

    found = compute(of, maps, (1, 2), "subject_heads")
    (choice,) = found.heads.choices
    assert (choice.name, choice.feature) == ("2–1", "verb, attractor")
    assert choice.test.value == pytest.approx(0.75)
    assert choice.baseline.value == choice.chance.value == 0.5
    assert choice.is_better
    confusion = found.heads.of("confusion", "verb, attractor")
    assert confusion.values[1, 0] == pytest.approx(-np.log2(0.75), abs=1e-6)
    assert (confusion.baseline == 1).all()
    shares = np.array([at_random(s, 3)[5, [1, 4]] for s in of.splits["test"]])
    expected = -np.log2(shares[:, 0] / shares.sum(1)).mean()
    assert confusion.values[1, 1] == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def pairs_run(session_runs, tmp_path_factory):
    folder, columns = tmp_path_factory.mktemp("pairs"), ["UID", "sentence_good", "sentence_bad"]
    pairs = [(x.paradigm, x.texts["good"][0], x.texts["bad"][0]) for x in made_pairs()]
    pd.DataFrame(pairs, columns=columns).to_csv(folder / "pairs.csv", index=False)
    model = session_runs.model("bert")
    return measure("subject_heads_of_pairs", model, folder / "pairs.csv", folder)


def test_numbers_of_pairs_are_those_of_maps_of_transformers(pairs_run):
    plain, bits = PlainMaps(pairs_run.model), {}
    for pair in made_pairs():
        words = pair.texts["good"][0].split()
        if words[1].removesuffix("s") not in ("keeper", "vase"):
            continue
        kind = "verb" if words[2] == "near" else "reflexive"
        same = words[1].endswith("s") == words[4].endswith("s")
        maps = plain.of_words(words)
        subject, other = maps[..., -1, 1], maps[..., -1, 4]
        name = f"{kind}, {'same number' if same else 'attractor'}"
        bits.setdefault(name, []).append(-np.log2(subject / (subject + other)))
    assert len(bits) == 4
    for name, expected in bits.items():
        found = HeadNumbers(pairs_run.record.rows).of("confusion", name)
        np.testing.assert_allclose(found.values, np.mean(expected, axis=0), atol=1e-4)
        assert found.n == 24


def test_tables_of_pairs(pairs_run):
    measurement = get_measurement("subject_heads_of_pairs")
    mean, chosen = measurement_tables(measurement, [pairs_run.record])
    assert [line.cells[0].text for line in mean.rows] == ["1", "2", "uniform"]
    assert len(chosen.rows) == 4 + 1


def test_a_corpus_without_such_pairs_is_refused():
    stored = SimpleNamespace(shards=lambda view: [], arrays=lambda part: [])
    of = SimpleNamespace(corpus=items(), view=SimpleNamespace(index={}, texts=()), stored=stored)
    with pytest.raises(NotServedError, match="no words to link"):
        get_measurement("subject_heads_of_pairs")(of)


def test_a_sentence_counts_once_for_each_word_that_is_tested():
    of = "the guards that the driver likes hurt themselves"
    given = [
        item("reflexives_across", of, of.replace("themselves", "himself"), 0),
        item("reflexives_across", of, of.replace("themselves", "herself"), 1),
        item("obj_rel_within_anim", of, of.replace("likes", "like"), 0),
    ]
    asked = [x for split in pair_questions(items(*given)).values() for _, (x,) in split]
    assert sorted(x.links[0][0][0] for x in asked) == [5, 7]
