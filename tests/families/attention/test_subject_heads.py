"""Attention to the subject or another noun: cases by hand, planted heads, and transformers."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from head_numbers import maps_of_words
from measuring import measure
from planted_heads import at_random, context
from transformers import AutoModel, AutoTokenizer

from probes.data.items import minimal_pair
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.families.attention.heads import choices
from probes.families.attention.subject_heads import pair_questions, share_and_confusion, verbs
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement

SING, PLUR = {"Number": "Sing"}, {"Number": "Plur"}
FINITE = {"VerbForm": "Fin", "Tense": "Pres"}


def treebank(text, heads, deprels, **more):
    """Words with tags: ``key.N.s`` is a singular noun, ``are.V.p`` a finite plural verb."""
    words, tags, feats = [], [], []
    for word in text.split():
        form, tag, number = (*word.split("."), "", "")[:3]
        words.append(form)
        tags.append({"N": "NOUN", "V": "AUX", "": "X"}[tag])
        of = {"s": SING, "p": PLUR, "": {}}[number]
        feats.append({**of, **FINITE} if tag == "V" else of)
    return Sentence(
        more.pop("id", "s"), "en", tuple(words), tuple(tags), feats=tuple(feats),
        heads=tuple(x - 1 for x in heads), deprels=tuple(deprels), **more,
    )  # fmt: skip


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


def test_the_last_noun_between_is_an_attractor_if_its_number_differs():
    assert cases(KEYS) == [(("verb, attractor",), ["are>keys", "are>cabinet"])]
    two = treebank(
        "keys.N.p to boxes.N.p of wood.N.s are.V.p here",
        [7, 3, 1, 5, 3, 7, 0],
        ["nsubj", "case", "nmod", "case", "nmod", "cop", "root"],
    )
    assert cases(two) == [(("verb, attractor",), ["are>keys", "are>wood"])]
    same = treebank(
        "keys.N.p to wood.N.s boxes.N.p are.V.p here",
        [6, 4, 4, 1, 6, 0],
        ["nsubj", "case", "compound", "nmod", "cop", "root"],
    )
    assert cases(same) == [(("verb, same number",), ["are>keys", "are>boxes"])]


@pytest.mark.parametrize(
    "sentence",
    [
        # No noun between them; one without a number; a conjunct of the subject.
        treebank("keys.N.p are.V.p here", [3, 3, 0], ["nsubj", "cop", "root"]),
        treebank(
            "keys.N.p to wood.N are.V.p here",
            [5, 3, 1, 5, 0],
            ["nsubj", "case", "nmod", "cop", "root"],
        ),
        treebank(
            "keys.N.p and box.N.s are.V.p here",
            [5, 3, 1, 5, 0],
            ["nsubj", "cc", "conj", "cop", "root"],
        ),
        # The verb does not agree with its subject.
        treebank(
            "key.N.s to boxes.N.p are.V.p here",
            [5, 3, 1, 5, 0],
            ["nsubj", "case", "nmod", "cop", "root"],
        ),
    ],
)
def test_verbs_that_are_left_out(sentence):
    assert cases(sentence) == []


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
    assert pair_questions(items(item("sent_comp", "the guard said the pilots laugh", "the guard said the pilots laughs"))) == {
        "dev": [], "test": []
    }  # fmt: skip
    nothing = get_measurement("subject_heads_of_pairs")
    assert nothing.reads(items(), None).texts == ()
    asked = pair_questions(items(*made_pairs()))
    subjects = {split: {s.words[1].removesuffix("s") for s, _ in x} for split, x in asked.items()}
    assert subjects == {"dev": {"boat", "light"}, "test": {"keeper", "vase"}}


def made_pairs():
    nouns = "boat", "keeper", "light", "vase"
    pairs = []
    for subject in nouns:
        for other in ("bird", "letter", "door", "fleet", "teacher", "window"):
            for one in ("", "s"):
                for two in ("", "s"):
                    before = f"the {subject}{one} near the {other}{two}"
                    good, bad = ("runs", "run") if not one else ("run", "runs")
                    pairs.append(
                        item("prep_anim", f"{before} {good}", f"{before} {bad}", len(pairs))
                    )
                    reflexive = f"the {subject}{one} that the {other}{two} like hurt"
                    good, bad = ("itself", "themselves")[:: -1 if one else 1]
                    pairs.append(
                        item(
                            "reflexives_across",
                            f"{reflexive} {good}",
                            f"{reflexive} {bad}",
                            len(pairs),
                        )
                    )
    return pairs  # fmt: skip


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
    def corpus(split):
        return tuple(
            Sentence(f"{split}{i}", "en", (f"{split}{i}", *KEYS.words[1:]), KEYS.upos,
                     feats=KEYS.feats, heads=KEYS.heads, deprels=KEYS.deprels, document=f"d{i % 30}")
            for i in range(60)
        )  # fmt: skip

    of = Corpus("toy", "1", "", {split: corpus(split) for split in ("train", "dev", "test")})

    def maps(s):
        return np.array([[at_random(s, 1), at_random(s, 2)], [to_subject(s), at_random(s, 3)]])

    found = get_measurement("subject_heads")(context(of, maps, measurement="subject_heads"))
    (choice,) = choices(found.rows)
    assert (choice.name, choice.feature) == ("2–1", "verb, attractor")
    assert choice.test.value == pytest.approx(0.75)
    assert choice.baseline.value == choice.chance.value == 0.5
    assert choice.is_better
    confusion = {
        (x.layer, x.axes.get("head")): x.value for x in found.rows if x.metric == "confusion"
    }
    assert confusion[2, 1] == pytest.approx(-np.log2(0.75), abs=1e-6)
    assert confusion[1, None] == confusion[2, None] == 1
    shares = np.array([at_random(s, 3)[5, [1, 4]] for s in of.splits["test"]])
    expected = -np.log2(shares[:, 0] / shares.sum(1)).mean()
    assert confusion[2, 2] == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def pairs_run(session_runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["UID", "sentence_good", "sentence_bad"])
        for pair in made_pairs():
            writer.writerow([pair.paradigm, *(pair.texts[x][0] for x in ("good", "bad"))])
    model, corpus = session_runs.model("bert"), folder / "pairs.csv"
    return measure("subject_heads_of_pairs", model, corpus, folder)


def test_numbers_of_pairs_are_those_of_maps_of_transformers(pairs_run):
    model = AutoModel.from_pretrained(pairs_run.model, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(pairs_run.model)
    bits = {}
    for pair in made_pairs():
        words = pair.texts["good"][0].split()
        if words[1].removesuffix("s") not in ("keeper", "vase"):
            continue
        kind = "verb" if words[2] == "near" else "reflexive"
        same = words[1].endswith("s") == words[4].endswith("s")
        maps = maps_of_words(model, tokenizer, words)
        subject, other = maps[..., -1, 1], maps[..., -1, 4]
        name = f"{kind}, {'same number' if same else 'attractor'}"
        bits.setdefault(name, []).append(-np.log2(subject / (subject + other)))
    rows = [
        x for x in pairs_run.record.rows if x.metric == "confusion" and "baseline" not in x.axes
    ]
    checked = 0
    for row in rows:
        if row.axes["feature"] in bits:
            expected = np.mean(bits[row.axes["feature"]], axis=0)[
                row.layer - 1, row.axes["head"] - 1
            ]
            assert row.value == pytest.approx(expected, abs=1e-4)
            assert row.n == 24
            checked += 1
    assert checked == 4 * 2 * 2


def test_tables_of_pairs(pairs_run):
    tables = {
        table.title.rpartition(" · ")[0].rpartition(" · ")[2] or table.title: table
        for table in measurement_tables(
            get_measurement("subject_heads_of_pairs"), [pairs_run.record]
        )
    }
    mean, chosen = tables.values()
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
