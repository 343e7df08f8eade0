"""The tasks that run on request, on sentences written by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from probes.common.errors import UserError
from probes.data.sentence import ROOT, Frame, Sentence
from probes.examples.scoring import require_metrics
from probes.tasks.builtin import STANDARD, expand_groups, group_of_task, tasks
from probes.tasks.distance import path_up, word_pairs
from probes.tasks.task import task as task_decorator

# She knows the man who sings
KNOWS = Sentence(
    "s1",
    "en",
    ("She", "knows", "the", "man", "who", "sings"),
    upos=("PRON", "VERB", "DET", "NOUN", "PRON", "VERB"),
    heads=(1, ROOT, 3, 1, 5, 3),
    deprels=("nsubj", "root", "det", "obj", "nsubj", "acl:relcl"),
    chunks=("B-NP", "B-VP", "B-NP", "I-NP", "B-NP", "B-VP"),
    frames=(
        Frame("know.01", (1, 2), (("ARG0", (0, 1)), ("V", (1, 2)), ("ARG1", (2, 6)))),
        Frame("sing.01", (5, 6), (("R-ARG0", (4, 5)), ("C-V", (5, 6)), ("C-ARG0", (2, 4)))),
        Frame("be.03", (3, 4), (("V", (3, 4)),)),
    ),
)


def of(name, sentence=KNOWS):
    return tasks.get(name).examples(sentence)


def test_deprel_pairs_each_word_with_its_head_and_passes_over_the_root():
    assert [(e.label, e.span, e.span2, e.type, e.groups) for e in of("deprel")] == [
        ("nsubj", (0, 1), (1, 2), "She", ("0 words between",)),
        ("det", (2, 3), (3, 4), "the", ("0 words between",)),
        ("obj", (3, 4), (1, 2), "man", ("1–2 words between",)),
        ("nsubj", (4, 5), (5, 6), "who", ("0 words between",)),
        ("acl:relcl", (5, 6), (3, 4), "sings", ("1–2 words between",)),
    ]


def test_distance_is_the_shortest_path_in_the_tree():
    tree = np.zeros((6, 6))
    for i, head in enumerate(KNOWS.heads):
        if head != ROOT:
            tree[i, head] = 1
    expected = shortest_path(tree, directed=False, unweighted=True)
    for i, j in combinations(range(6), 2):
        edges = len(set(path_up(KNOWS.heads, i)) ^ set(path_up(KNOWS.heads, j)))
        assert edges == expected[i, j]
    found = of("distance")
    assert {e.span[0] for e in found} | {e.span2[0] for e in found} == set(range(6))
    for e in found:
        i, j = e.span[0], e.span2[0]
        assert i < j
        assert e.label == expected[i, j]
        assert e.type == f"{KNOWS.words[i]} {KNOWS.words[j]}"


def test_pairs_of_a_sentence_are_as_many_as_its_words_and_always_the_same():
    words = [f"w{i}" for i in range(2000)]
    found = word_pairs(words)
    assert found == word_pairs(tuple(words))
    assert found != word_pairs(words[::-1])
    # Of 2,000 draws among two million pairs hardly two are the same.
    assert 1990 <= len(found) <= 2000
    gaps = [j - i for i, j in found]
    assert sum(gaps) / len(gaps) == pytest.approx(2000 / 3, rel=0.05)  # as of two random places
    assert word_pairs(["one"]) == []
    assert word_pairs(["one", "two"]) == [(0, 1)]


def test_chunk_labelling_spans_whole_chunks():
    assert [(e.label, e.span, e.type, e.groups) for e in of("chunk-labelling")] == [
        ("NP", (0, 1), "She", ("1 word",)),
        ("VP", (1, 2), "knows", ("1 word",)),
        ("NP", (2, 4), "man", ("2 words",)),
        ("NP", (4, 5), "who", ("1 word",)),
        ("VP", (5, 6), "sings", ("1 word",)),
    ]
    long = Sentence(
        "s", "en", tuple("abcdefg"), chunks=("O", "B-NP", "I-NP", "I-NP", "I-NP", "O", "B-PP")
    )
    assert [(e.label, e.span, e.groups) for e in of("chunk-labelling", long)] == [
        ("NP", (1, 5), ("4+ words",)),
        ("PP", (6, 7), ("1 word",)),
    ]


def test_roles_are_those_that_a_predicate_has_each_once():
    assert [(e.label, e.span, e.type, e.groups) for e in of("roles")] == [
        (("ARG0", "ARG1"), (1, 2), "know", ("predicate VERB",)),
        (("ARG0",), (5, 6), "sing", ("predicate VERB",)),
        ((), (3, 4), "be", ("predicate NOUN",)),
    ]


def test_main_verb_is_told_from_other_verbs():
    assert [(e.label, e.span, e.type, e.groups) for e in of("main-verb")] == [
        ("main", (1, 2), "knows", ("first verb",)),
        ("other", (5, 6), "sings", ("later verb",)),
    ]


def test_subject_noun_is_that_of_the_main_clause():
    # What dogs chase cats fear: "dogs" is the subject of a clause below, "cats" of the main one.
    fear = Sentence(
        "s",
        "en",
        ("What", "dogs", "chase", "Cats", "fear"),
        upos=("PRON", "NOUN", "VERB", "PROPN", "VERB"),
        heads=(4, 2, 0, 4, ROOT),
        deprels=("obj", "nsubj", "acl:relcl", "nsubj:pass", "root"),
    )
    assert [(e.label, e.span, e.groups, e.reference) for e in of("subject-noun", fear)] == [
        ("other", (1, 2), ("first noun",), "main"),
        ("main", (3, 4), ("later noun",), "other"),
    ]
    assert [e.label for e in of("subject-noun")] == ["other"]


def test_the_main_auxiliary_is_the_first_of_the_main_clause():
    # What we can see will have been hers: "hers" is the root.
    hers = Sentence(
        "s",
        "en",
        ("What", "we", "can", "see", "will", "have", "been", "hers"),
        upos=("PRON", "PRON", "AUX", "VERB", "AUX", "AUX", "AUX", "PRON"),
        heads=(7, 3, 3, 0, 7, 7, 7, ROOT),
        deprels=("nsubj", "nsubj", "aux", "acl:relcl", "aux", "aux", "cop", "root"),
    )
    assert [(e.label, e.span, e.type, e.reference) for e in of("main-auxiliary", hers)] == [
        ("other", (2, 3), "can", "main"),
        ("main", (4, 5), "will", "other"),
        ("other", (5, 6), "have", "other"),
        ("other", (6, 7), "been", "other"),
    ]


def test_position_is_the_index():
    words = Sentence("s", "en", tuple(f"w{i}" for i in range(30)))
    found = of("position", words)
    assert [e.label for e in found] == list(range(30))
    assert [found[i].groups for i in (9, 10, 19, 20, 29)] == [
        ("words 0–9",),
        ("words 10–19",),
        ("words 10–19",),
        ("words 20 and on",),
        ("words 20 and on",),
    ]
    assert found[7].type == "w7"


@pytest.mark.parametrize(
    ("words", "label"),
    [(1, "1–4"), (4, "1–4"), (5, "5–8"), (13, "13–16"), (25, "21–25"), (26, "26+"), (99, "26+")],
)
def test_length_is_in_classes(words, label):
    (example,) = of("length", Sentence("s", "en", ("w",) * words))
    assert (example.label, example.span, example.type) == (label, (0, words), "")


@pytest.mark.parametrize(("words", "label"), [(1, "0"), (8, "7"), (9, "8+"), (20, "8+")])
def test_tree_depth_is_that_of_the_deepest_word(words, label):
    chain = Sentence("s", "en", ("w",) * words, heads=(ROOT, *range(words - 1)))
    (example,) = of("tree-depth", chain)
    assert (example.label, example.span) == (label, (0, words))
    assert of("tree-depth")[0].label == "3"
    assert of("tree-depth")[0].groups == ("5–8 words",)


def test_standard_tasks_are_the_five_and_all_are_all():
    assert STANDARD == ("pos", "chunking", "depth", "agreement", "srl")
    assert expand_groups(["standard"]) == list(STANDARD)
    assert expand_groups(["deprel", "standard", "pos"]) == ["deprel", *STANDARD]
    mine = replace(tasks.get("pos"), name="mine", group="other")
    assert expand_groups(["all"], {"mine": mine}) == ["mine", *tasks]


def test_groups_have_the_tasks_that_say_so_and_give_way_to_tasks_of_their_name():
    *semantics, last = expand_groups(["semantics", "pos"])
    assert {"srl", "roles", "factuality", "sense", "entities"} < {*semantics}
    assert last == "pos"
    assert {"depth", "deprel", "tree-depth", "constituent"} <= set(expand_groups(["syntax"]))
    assert {"position", "length", "word-content"} <= set(expand_groups(["surface"]))
    mine = replace(tasks.get("pos"), name="surface", group="discourse")
    found = expand_groups(["surface", "discourse"], {"surface": mine})
    assert found == ["surface", "coreference"]
    groups = [group_of_task(name) for name in ("srl", "feats.Number", "lemma-script", "mine")]
    assert groups == ["semantics", "morphology", "morphology", "other"]


def test_an_unknown_group_is_refused():
    with pytest.raises(UserError, match=r"unknown group 'sintax'. Did you mean 'syntax'"):
        task_decorator("x", version=1, needs=[], metric="accuracy", group="sintax")


def test_every_task_has_a_summary_and_metrics_that_score_it():
    for name in tasks:
        task = tasks.get(name)
        assert task.summary.endswith("."), name
        require_metrics(task)
