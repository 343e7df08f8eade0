"""Tasks made from a treebank: features against conllu's own parse, lemmas by their edit scripts."""

import re
from collections import Counter
from pathlib import Path

import conllu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.data.find import find_corpus
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.examples.examples import SEEN, UNSEEN, collect_examples
from probes.tasks.morphology import ENOUGH, edit_script, morphology, value_of
from probes.tasks.task import Example, Excluded

SPANISH = Path(__file__).parents[1] / "treebanks" / "UD_Spanish-Probe"


def corpus_of(train, held_out, lemmas=True):
    """A corpus from words with features and lemmas: ``(form, lemma, {feature: value})``."""

    def sentence(split, words):
        forms, found, feats = zip(*words, strict=True)
        return Sentence(split, "xx", forms, feats=feats, lemmas=found if lemmas else ())

    parts = {"train": train, "dev": held_out, "test": held_out}
    return Corpus("x", "", "", {split: (sentence(split, parts[split]),) for split in SPLITS})


def cat(number, **feats):
    return ("cats" if number == "Plur" else "cat", "cat", {"Number": number, **feats})


HELD_OUT = [cat("Sing", Gender="Fem"), cat("Plur"), ("dogs", "dog", {"Number": "Plur"})]


def test_a_feature_has_a_task_if_two_of_its_values_have_enough_words():
    train = [cat("Sing", Gender="Fem", **{"Number[psor]": "Sing"})] * ENOUGH
    train += [cat("Plur", Gender="Masc")] * ENOUGH + [cat("Dual", Gender="Fem,Masc")] * 3
    made, lacking = morphology(corpus_of(train, HELD_OUT))
    assert list(made) == ["feats.Number", "lemma-script"]
    assert lacking == {
        # Masc has enough words in train, but none in dev or test.
        "feats.Gender": "only Fem has 20 words in train and some in dev and test; a task needs two "
        "labels",
        "feats.Number[psor]": "no label has 20 words in train and some in dev and test; a task "
        "needs two labels",
    }
    made, lacking = morphology(corpus_of(train[1:], HELD_OUT))  # one word of Sing fewer
    assert list(made) == ["lemma-script"]  # the form of Dual is that of Sing
    assert lacking["feats.Number"].startswith("only Plur has 20 words in train")
    made, lacking = morphology(corpus_of(train, HELD_OUT, lemmas=False))
    assert "lemma-script" in lacking


def test_words_without_the_feature_are_no_examples_and_several_values_are_a_class():
    train = [cat("Sing")] * ENOUGH + [cat("Plur")] * ENOUGH
    train += [("sheep", "sheep", {"Number": "Plur,Sing"}), ("the", "the", {})]
    corpus = corpus_of(train, HELD_OUT)
    task = morphology(corpus)[0]["feats.Number"]
    found = task.examples(corpus.splits["train"][0])
    assert Counter(example.label for example in found) == {"Sing": 20, "Plur": 20, "Plur,Sing": 1}
    assert found[-1] == Example("Plur,Sing", (40, 41), type="sheep")
    test = collect_examples(task, corpus, "masked").splits["test"].examples
    assert [SEEN in e.groups for e in test] == [True, True, False]
    assert UNSEEN in test[2].groups


def test_features_are_those_that_conllu_parses():
    corpus = find_corpus(str(SPANISH)).load()
    expected = {
        split: Counter(
            (name, word["form"], value)
            for sentence in conllu.parse((SPANISH / f"es_probe-ud-{split}.conllu").read_text())
            for word in sentence
            if isinstance(word["id"], int)
            for name, value in (word["feats"] or {}).items()
        )
        for split in SPLITS
    }
    made, lacking = morphology(corpus)
    names = {name for counts in expected.values() for name, _, _ in counts}
    assert {*made, *lacking} == {f"feats.{name}" for name in names} | {"lemma-script"}
    # The treebank is too small for tasks of its features; their rule has no such condition.
    for split in SPLITS:
        found = Counter(
            (name, sentence.words[example.span[0]], example.label)
            for name in names
            for sentence in corpus.splits[split]
            for example in value_of(name, sentence)
        )
        assert found == expected[split]


@pytest.mark.parametrize(
    ("form", "lemma", "script"),
    [
        ("Dogs", "dog", "…-1"),
        ("cities", "city", "…-3+y"),
        ("went", "go", "go"),
        ("London", "London", "…"),
        ("gesehen", "sehen", "-2…"),
        ("geschrieben", "schreiben", "-2…-5+eiben"),
        ("better", "good", "good"),
        ("are", "be", "-2+b…"),
    ],
)
def test_edit_scripts(form, lemma, script):
    assert edit_script(form, lemma) == script


def applied(script, form):
    """What a script makes of a form."""
    if "…" not in script:
        return script
    (off, on), (end_off, end_on) = (
        re.fullmatch(r"(?:-(\d+))?(?:\+(.*))?", part, re.S).groups() for part in script.split("…")
    )
    stem = form.lower()[int(off or 0) :]
    return (on or "") + stem[: len(stem) - int(end_off or 0)] + (end_on or "")


letters = st.text(st.characters(codec="utf-8", exclude_characters="…"), min_size=1, max_size=8)


@given(letters, letters)
def test_a_script_makes_the_lemma_of_the_form(form, lemma):
    assert applied(edit_script(form, lemma), form) == lemma.lower()


def test_rare_scripts_and_missing_lemmas_are_left_out_and_counted():
    train = [cat("Sing")] * ENOUGH + [cat("Plur")] * ENOUGH + [("went", "go", {}), ("a", "_", {})]
    corpus = corpus_of(train, [*HELD_OUT, ("better", "good", {}), ("_", "_", {})])
    task = morphology(corpus)[0]["lemma-script"]
    found = collect_examples(task, corpus, "masked")
    assert found.classes == ("…", "…-1")
    rare = "edit script of fewer than 20 words in train, or none in dev or test"
    assert found.splits["train"].excluded == {rare: 1, "no lemma": 1}
    assert found.splits["test"].excluded == {rare: 1}
    assert [e.label for e in found.splits["test"].examples] == ["…", "…-1", "…-1", "…"]
    assert not isinstance(task.examples(corpus.splits["dev"][0])[0], Excluded)


@pytest.mark.slow
@pytest.mark.real_data
def test_tasks_of_ewt(real_data):
    corpus = find_corpus("ewt", data_dir=real_data).load()
    made, lacking = morphology(corpus)
    assert [name.removeprefix("feats.") for name in made] == [
        "Case", "Definite", "Degree", "ExtPos", "Gender", "Mood", "NumForm", "NumType", "Number",
        "Person", "Polarity", "PronType", "Tense", "VerbForm", "lemma-script",
    ]  # fmt: skip
    assert [name.removeprefix("feats.") for name in lacking] == [
        "Abbr", "Foreign", "Poss", "Reflex", "Style", "Typo", "Voice",
    ]  # fmt: skip
    lines = next(real_data.rglob("en_ewt-ud-test.conllu")).read_text().splitlines()
    columns = [line.split("\t") for line in lines if line and line[0] != "#"]
    feats = [x[5].split("|") for x in columns if x[0].isdigit()]
    expected = Counter(x for found in feats for x in found if x.startswith("Number="))
    found = [e for s in corpus.splits["test"] for e in made["feats.Number"].examples(s)]
    assert Counter(f"Number={example.label}" for example in found) == expected
    scripts = [e for s in corpus.splits["test"] for e in made["lemma-script"].examples(s)]
    kept = [example.label for example in scripts if isinstance(example, Example)]
    assert (len(kept), len(scripts), len(set(kept))) == (24884, 25094, 56)
