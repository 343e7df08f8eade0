"""Every task on sentences written by hand."""

from collections import Counter

import pytest
from sentences import parsed, sentence_of

from probes.common.errors import UserError
from probes.data.sentence import ROOT, Frame, Sentence
from probes.tasks.builtin import tasks
from probes.tasks.depth import depths
from probes.tasks.srl import distance_group
from probes.tasks.task import Example, Excluded, task

KEYS = parsed(
    "The/DET/2/det keys/NOUN/7/nsubj/Plur to/ADP/5/case the/DET/5/det cabinet/NOUN/2/nmod/Sing "
    "are/AUX/7/cop/Plur/Pres old/ADJ/0/root"
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


def agreement_of(text):
    return tasks.get("agreement").examples(parsed(text))


def test_agreement_hides_the_finite_copula_and_counts_the_attractor():
    (example,) = tasks.get("agreement").examples(KEYS)
    assert example == Example(
        "Plur", (5, 6), type="keys", hide=5, cue=1, groups=("1+ attractors",), reference="Plur"
    )


@pytest.mark.parametrize(
    ("text", "hide", "cue"),
    [
        ("Dogs/NOUN/2/nsubj/Plur bark/VERB/0/root/Plur/Pres", 1, 0),
        # In the past, only was and were show number.
        ("Dogs/NOUN/3/nsubj/Plur Were/AUX/3/aux/Plur/Past barking/VERB/0/root", 1, 0),
        # In inversion, the cue is after the verb.
        ("Are/AUX/3/cop/Plur/Pres dogs/NOUN/3/nsubj/Plur loud/ADJ/0/root", 0, 1),
        ("Scissors/NOUN/2/nsubj/Ptan cut/VERB/0/root/Plur/Pres", 1, 0),
    ],
)
def test_agreement_hides_the_finite_verb(text, hide, cue):
    (example,) = agreement_of(text)
    assert (example.hide, example.cue) == (hide, cue)
    assert example.label == example.reference == "Plur"


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (
            "Dogs/NOUN/4/nsubj/Plur near/ADP/3/case cats/NOUN/1/nmod/Plur bark/VERB/0/root/Plur/Pres",
            "0 attractors",
        ),
        # A conjunct is part of the subject, on the subject itself or on another conjunct.
        (
            "Dogs/NOUN/6/nsubj/Plur ,/PUNCT/3/punct cat/NOUN/1/conj/Sing and/CCONJ/5/cc "
            "bird/NOUN/3/conj/Sing bark/VERB/0/root/Plur/Pres",
            "0 attractors",
        ),
        # A noun that modifies a conjunct is not.
        (
            "Dogs/NOUN/6/nsubj/Plur and/CCONJ/3/cc friends/NOUN/1/conj/Plur of/ADP/5/case "
            "cat/NOUN/3/nmod/Sing bark/VERB/0/root/Plur/Pres",
            "1+ attractors",
        ),
        # Neither is a conjunct of an attractor.
        (
            "Dogs/NOUN/6/nsubj/Plur of/ADP/3/case dogs/NOUN/1/nmod/Plur and/CCONJ/5/cc "
            "cat/NOUN/3/conj/Sing bark/VERB/0/root/Plur/Pres",
            "1+ attractors",
        ),
        # The noun has another number than the verb, but that of the subject.
        (
            "Group/NOUN/4/nsubj/Sing near/ADP/3/case house/NOUN/1/nmod/Sing bark/VERB/0/root/Plur/Pres",
            "subject of another Number",
        ),
        (
            "Dog/NOUN/4/nsubj/Sing and/CCONJ/3/cc cat/NOUN/1/conj/Sing bark/VERB/0/root/Plur/Pres",
            "subject of another Number",
        ),
        (
            "Scissors/NOUN/4/nsubj/Ptan near/ADP/3/case dog/NOUN/1/nmod/Sing bark/VERB/0/root/Plur/Pres",
            "1+ attractors",
        ),
        (
            "Tiger-Cats/PROPN/4/nsubj near/ADP/3/case dog/NOUN/1/nmod/Sing bark/VERB/0/root/Plur/Pres",
            None,
        ),
    ],
)
def test_attractors_have_another_number_than_the_subject(text, group):
    (example,) = agreement_of(text)
    assert example.groups == (() if group is None else (group,))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Dogs/NOUN/2/nsubj/Plur barked/VERB/0/root/Plur/Past", "form does not show number"),
        ("Dogs/NOUN/2/nsubj/Plur bark/VERB/0/root", "no finite verb with Number"),
        (
            "Dogs/NOUN/4/nsubj/Plur do/AUX/4/aux/Plur/Pres are/AUX/4/aux:pass/Plur/Pres barking/VERB/0/root",
            "several finite verbs with Number",
        ),
    ],
)
def test_agreement_counts_what_it_leaves_out(text, reason):
    assert agreement_of(text) == [Excluded(reason)]


def test_agreement_passes_over_pronouns():
    assert agreement_of("They/PRON/2/nsubj/Plur bark/VERB/0/root/Plur/Pres") == []


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
