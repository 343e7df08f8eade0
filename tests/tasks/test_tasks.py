"""Every task on sentences written by hand."""

from collections import Counter

import pytest
from sentences import sentence_of

from probes.common.errors import UserError
from probes.data.sentence import ROOT, Frame, Sentence
from probes.tasks.builtin import tasks
from probes.tasks.depth import depths
from probes.tasks.srl import distance_group
from probes.tasks.task import Example, Excluded, task

SING, PLUR = {"Number": "Sing"}, {"Number": "Plur"}


def finite(number, tense="Pres"):
    return {"Number": number, "Tense": tense, "VerbForm": "Fin"}


# The keys to the cabinet are old
KEYS = sentence_of(
    "The keys to the cabinet are old",
    "DET NOUN ADP DET NOUN AUX ADJ",
    (1, 6, 4, 4, 1, 6, ROOT),
    "det nsubj case det nmod cop root",
    ({}, PLUR, {}, {}, SING, finite("Plur"), {}),
)


def test_pos():
    examples = tasks.get("pos").examples(KEYS)
    assert [e.label for e in examples] == list(KEYS.upos)
    assert examples[1] == Example("NOUN", (1, 2), type="keys")


def test_chunking():
    s = sentence_of("She runs", chunks=("B-NP", "B-VP"))
    assert [(e.label, e.span) for e in tasks.get("chunking").examples(s)] == [
        ("B-NP", (0, 1)),
        ("B-VP", (1, 2)),
    ]


def test_depth_counts_edges_to_the_root():
    assert depths(KEYS.heads) == [2, 1, 3, 3, 2, 1, 0]
    found = tasks.get("depth").examples(KEYS)
    assert [e.label for e in found] == [2, 1, 3, 3, 2, 1, 0]
    assert [e.groups for e in found[5:]] == [("depth 1",), ("depth 0",)]
    for heads in ((1, 0), (0,), (ROOT, 2, 3, 2)):
        with pytest.raises(ValueError, match="cycle"):
            depths(heads)


def test_depth_keeps_punctuation_apart_and_deep_words_together():
    chain = sentence_of("a b c d e f .", "X X X X X X PUNCT", (ROOT, 0, 1, 2, 3, 4, 5))
    groups = [e.groups for e in tasks.get("depth").examples(chain)]
    assert groups[4:] == [("depth 4",), ("depth 5+",), ("depth 5+", "punctuation")]


def test_agreement_hides_the_finite_copula_and_counts_the_attractor():
    (example,) = tasks.get("agreement").examples(KEYS)
    assert example == Example(
        "Plur",
        (5, 6),
        type="keys",
        hide=5,
        cue=1,
        groups=("1+ attractors",),
        reference="Plur",
    )


def agreement_of(text, upos, heads, deprels, feats):
    return tasks.get("agreement").examples(sentence_of(text, upos, heads, deprels, feats))


def test_agreement_takes_the_verb_itself_and_sees_no_attractor_of_the_same_number():
    (example,) = agreement_of(
        "Dogs near cats bark",
        "NOUN ADP NOUN VERB",
        (3, 2, 0, ROOT),
        "nsubj case nmod root",
        (PLUR, {}, PLUR, finite("Plur")),
    )
    assert (example.hide, example.groups) == (3, ("0 attractors",))


@pytest.mark.parametrize(
    ("text", "upos", "heads", "deprels", "numbers", "group"),
    [
        # A conjunct is part of the subject, on the subject itself or on another conjunct.
        (
            "Dogs , cat and bird bark",
            "NOUN PUNCT NOUN CCONJ NOUN VERB",
            (5, 2, 0, 4, 2, ROOT),
            "nsubj punct conj cc conj root",
            (PLUR, {}, SING, {}, SING),
            "0 attractors",
        ),
        # A noun that modifies a conjunct is not.
        (
            "Dogs and friends of cat bark",
            "NOUN CCONJ NOUN ADP NOUN VERB",
            (5, 2, 0, 4, 2, ROOT),
            "nsubj cc conj case nmod root",
            (PLUR, {}, PLUR, {}, SING),
            "1+ attractors",
        ),
        # Neither is a conjunct of an attractor.
        (
            "Dogs of dogs and cat bark",
            "NOUN ADP NOUN CCONJ NOUN VERB",
            (5, 2, 0, 4, 2, ROOT),
            "nsubj case nmod cc conj root",
            (PLUR, {}, PLUR, {}, SING),
            "1+ attractors",
        ),
        # The noun has another number than the verb, but that of the subject.
        (
            "Group near house bark",
            "NOUN ADP NOUN VERB",
            (3, 2, 0, ROOT),
            "nsubj case nmod root",
            (SING, {}, SING),
            "subject of another Number",
        ),
        (
            "Dog and cat bark",
            "NOUN CCONJ NOUN VERB",
            (3, 2, 0, ROOT),
            "nsubj cc conj root",
            (SING, {}, SING),
            "subject of another Number",
        ),
        (
            "Scissors near dog bark",
            "NOUN ADP NOUN VERB",
            (3, 2, 0, ROOT),
            "nsubj case nmod root",
            ({"Number": "Ptan"}, {}, SING),
            "1+ attractors",
        ),
        (
            "Tiger-Cats near dog bark",
            "PROPN ADP NOUN VERB",
            (3, 2, 0, ROOT),
            "nsubj case nmod root",
            ({}, {}, SING),
            None,
        ),
    ],
)
def test_attractors_have_another_number_than_the_subject(
    text, upos, heads, deprels, numbers, group
):
    """The verb is plural in all of them."""
    feats = (*numbers, finite("Plur"))
    (example,) = agreement_of(text, upos, heads, deprels, feats)
    assert example.groups == (() if group is None else (group,))


@pytest.mark.parametrize(
    ("form", "feats", "reason"),
    [
        ("barked", finite("Plur", "Past"), "form does not show number"),
        ("bark", {"VerbForm": "Inf"}, "no finite verb with Number"),
    ],
)
def test_agreement_counts_what_it_leaves_out(form, feats, reason):
    found = agreement_of(f"Dogs {form}", "NOUN VERB", (1, ROOT), "nsubj root", (PLUR, feats))
    assert found == [Excluded(reason)]


def test_agreement_keeps_was_and_were_in_the_past():
    (example,) = agreement_of(
        "Dogs Were barking",
        "NOUN AUX VERB",
        (2, 2, ROOT),
        "nsubj aux root",
        (PLUR, finite("Plur", "Past"), {"VerbForm": "Part"}),
    )
    assert (example.label, example.hide) == ("Plur", 1)


def test_agreement_leaves_out_two_finite_verbs_and_pronoun_subjects():
    found = agreement_of(
        "Dogs do are barking",
        "NOUN AUX AUX VERB",
        (3, 3, 3, ROOT),
        "nsubj aux aux:pass root",
        (PLUR, finite("Plur"), finite("Plur"), {}),
    )
    assert found == [Excluded("several finite verbs with Number")]
    assert not agreement_of(
        "They bark", "PRON VERB", (1, ROOT), "nsubj root", (PLUR, finite("Plur"))
    )


def test_agreement_cue_after_the_verb_in_inversion():
    (example,) = agreement_of(
        "Are dogs loud", "AUX NOUN ADJ", (2, 2, ROOT), "cop nsubj root", (finite("Plur"), PLUR, {})
    )
    assert (example.hide, example.cue) == (0, 1)


def test_scissors_ask_for_a_plural_verb():
    (example,) = agreement_of(
        "Scissors cut", "NOUN VERB", (1, ROOT), "nsubj root", ({"Number": "Ptan"}, finite("Plur"))
    )
    assert example.reference == "Plur"


def test_srl_pairs_predicate_and_argument_and_skips_v():
    s = sentence_of(
        "The vase that she broke fell",
        frames=(
            Frame(
                "break.01",
                (4, 5),
                (("ARG1", (0, 2)), ("R-ARG1", (2, 3)), ("ARG0", (3, 4)), ("C-V", (5, 6))),
            ),
        ),
    )
    found = tasks.get("srl").examples(s)
    assert [(e.label, e.span, e.span2, e.type, e.groups) for e in found] == [
        ("ARG1", (4, 5), (0, 2), "break The", ("core", "without R- and C-", "1–2 words between")),
        ("R-ARG1", (4, 5), (2, 3), "break that", ("1–2 words between",)),
        ("ARG0", (4, 5), (3, 4), "break she", ("core", "without R- and C-", "0 words between")),
    ]


@pytest.mark.parametrize(
    ("argument", "groups"),
    [
        ((3, 5), ("0 words between",)),
        ((6, 7), ("0 words between",)),
        ((8, 9), ("1–2 words between",)),
        ((9, 10), ("3–6 words between",)),
        ((12, 13), ("3–6 words between",)),
        ((13, 20), ("7+ words between",)),
        ((4, 6), ()),
    ],
)
def test_distance_is_the_words_between(argument, groups):
    assert distance_group((5, 6), argument) == groups


def test_a_sentence_without_the_annotation_gives_no_examples():
    bare = Sentence("s", "en", ("Hello",))
    annotated = [name for name in tasks if tasks.get(name).needs]
    assert len(annotated) == len(list(tasks)) - 3
    assert all(tasks.get(name).examples(bare) == [] for name in annotated)


@pytest.mark.parametrize("version", ["1", 1.0, True, None])
def test_a_version_is_a_whole_number(version):
    with pytest.raises(UserError, match="is not an integer; write version=1"):
        task("t", version=version, needs=[], metric="accuracy")


@pytest.mark.slow
@pytest.mark.real_data
def test_ewt_agreement_examples(real_data):
    from probes.data.find import find_corpus

    corpus = find_corpus("ewt", data_dir=real_data).load()
    task = tasks.get("agreement")
    found = {
        split: Counter(type(x).__name__ for s in part for x in task.examples(s))
        for split, part in corpus.splits.items()
    }
    assert (found["train"]["Example"], found["test"]["Example"]) == (3985, 484)
    examples = [x for s in corpus.splits["test"] for x in task.examples(s)]
    groups = Counter(group for x in examples if isinstance(x, Example) for group in x.groups)
    assert groups == {"0 attractors": 429, "1+ attractors": 24, "subject of another Number": 31}
