"""Tasks of mentions, on documents small enough to list every pair by hand."""

from collections import Counter
from dataclasses import replace

import pytest
from rules import corpus_of
from sentences import bracketed, sentence_of

from probes.cli.check_task import check_task
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sentence import ROOT, Mention, Sentence, windows
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer, baselines, references
from probes.tasks.builtin import get_task
from probes.tasks.task import Example, Excluded, task

COREFERENCE, ENTITIES = get_task("coreference"), get_task("entities")


TAGS = {"Anna": "PROPN", "Bob": "PROPN", "She": "PRON", "she": "PRON", "her": "PRON", "him": "PRON"}


def mentioning(number, text, heads):
    """A sentence of the document d, with mentions of persons in brackets, named by their entity."""
    words, spans = bracketed(text)
    upos = " ".join(TAGS.get(word, "NOUN") for word in words)
    mentions = tuple(Mention(entity, "person", span) for entity, span in spans)
    layers = {"name": str(number), "document": "d", "mentions": mentions}
    return sentence_of(" ".join(words), upos, heads, **layers)


ANNA = mentioning(1, "[a Anna] met [b Bob] .", (1, ROOT, 1, 1))
SHE = mentioning(2, "[a She] saw [b [a her] brother] .", (1, ROOT, 3, 1, 1))
BOB = mentioning(3, "[b Bob] left [house the house] .", (1, ROOT, 3, 1, 1))
END = mentioning(4, "[a She] stayed .", (1, ROOT, 1))
DOCUMENT = (ANNA, SHE, BOB, END)
NONE_BESIDE = Excluded("no mention of another entity of the same form beside the first")


def pairs(window):
    """Label, the words of both mentions, distance and match, of each example."""
    found = []
    for item in COREFERENCE.examples(window):
        if isinstance(item, Excluded):
            found.append(item)
            continue
        one, other = (" ".join(item.words[slice(*span)]) for span in (item.span, item.span2))
        assert item.words == window.words
        assert (item.reference == "same") == ("same words" in item.groups)
        found.append((item.label, one, other, item.groups[0], item.reference))
    return found


def test_all_pairs_of_a_document():
    one, two, three, four = windows(DOCUMENT, 3)
    next_to, far = "one sentence apart", "two sentences apart"
    assert pairs(one) == []
    assert pairs(two) == [
        ("same", "Anna", "She", next_to, "other"),
        ("other", "Bob", "She", next_to, "other"),
        ("same", "Bob", "her brother", next_to, "other"),
        ("other", "Anna", "her brother", next_to, "other"),
        ("same", "Anna", "her", next_to, "other"),
        ("other", "Bob", "her", next_to, "other"),
        NONE_BESIDE,  # She and her: the brother is not before *her*
    ]
    assert pairs(three) == [
        ("same", "Bob", "Bob", far, "same"),
        ("other", "Anna", "Bob", far, "other"),
        NONE_BESIDE,  # of *her brother*, a common noun among pronouns
    ]
    assert pairs(four) == [NONE_BESIDE, NONE_BESIDE]  # of *She* and *her* beside *her brother*


def test_mentions_in_one_sentence():
    both = mentioning(1, "[a Anna] told [b Bob] [a she] won", (1, ROOT, 1, 4, 1))
    tail = mentioning(2, "[b Bob] laughed", (1, ROOT))
    first, second = windows((both, tail), 3)
    # Bob is mentioned once in the first window, so that he is in no pair.
    assert pairs(first) == [NONE_BESIDE]
    assert pairs(second) == [
        ("same", "Bob", "Bob", "one sentence apart", "same"),
        ("other", "Anna", "Bob", "one sentence apart", "other"),
    ]
    again = mentioning(
        1, "[b Bob] saw [a Anna] when [a she] left [b him]", (1, ROOT, 1, 5, 5, 1, 5)
    )
    (window,) = windows((again,), 3)
    assert pairs(window) == [
        ("same", "Anna", "she", "in one sentence", "other"),
        ("other", "Bob", "she", "in one sentence", "other"),
        ("same", "Bob", "him", "in one sentence", "other"),
        ("other", "Anna", "him", "in one sentence", "other"),
    ]


def test_a_counterpart_is_as_long_as_can_be_and_not_nested():
    text = "[cat the cat of [man the man]] saw [dogs dogs] and [pig a pig]"
    first = mentioning(1, text, (1, 5, 4, 4, 1, ROOT, 5, 9, 9, 6))
    # All are mentioned twice, the cat and the man as well.
    second = mentioning(2, "[man she] left [pig it]", (1, ROOT, 1))
    third = mentioning(3, "[cat cat] [dogs dogs]", (ROOT, 0))
    near, far = "one sentence apart", "two sentences apart"
    _, two, three = windows((first, second, third), 3)
    # In this window the cat and the dogs are mentioned once.
    assert pairs(two) == [
        ("same", "the man", "she", near, "other"),
        ("other", "a pig", "she", near, "other"),
        ("same", "a pig", "it", near, "other"),
        ("other", "the man", "it", near, "other"),
    ]
    assert pairs(three) == [
        ("same", "the cat of the man", "cat", far, "other"),
        ("other", "a pig", "cat", far, "other"),  # of two words; the man is nested
        ("same", "dogs", "dogs", far, "same"),
        ("other", "a pig", "dogs", far, "other"),  # as long as *the man*, and nearer
    ]


def test_cues_are_form_and_length():
    two = list(windows(DOCUMENT, 3))[1]
    same, other, *_ = (each for each in COREFERENCE.examples(two) if isinstance(each, Example))
    assert set(same.cues) == {
        "lengths [1, 1]",
        "forms ['name', 'she']",
        "0: name",
        "1: she",
        "equally long",
    }
    assert same.cues == other.cues


def test_what_is_no_pair_of_spans_is_counted():
    nested = mentioning(1, "[a Anna [a herself]] won", (2, 0, ROOT))
    dropped = mentioning(2, "[a ] went", (ROOT,))
    first, second = windows((nested, dropped), 3)
    assert pairs(first) == [Excluded("one mention within the other")]
    assert pairs(second) == [Excluded("mention without words")]


def test_the_type_of_the_pair_is_its_heads():
    two = list(windows(DOCUMENT, 3))[1]
    types = [each.type for each in COREFERENCE.examples(two) if isinstance(each, Example)]
    assert types[2:4] == ["bob brother", "anna brother"]


def test_examples_belong_to_the_last_sentence_and_are_read_in_their_window():
    corpus = corpus_of(DOCUMENT)
    found = collect_examples(COREFERENCE, corpus, "masked")
    test = found.splits["test"]
    assert test.sentence.tolist() == [1] * 6 + [2] * 2
    both = list(windows(DOCUMENT, 3))[1:3]
    assert {text.words for text in test.texts} == {window.words for window in both}
    assert found.view == "own"
    assert test.excluded == {NONE_BESIDE.reason: 4}
    # Right are the pair whose words match and all 4 that do not corefer.
    assert found.types_shown
    scores = baselines(found, found.targets("train"), Scorer(found, "test"))
    assert scores["string match"] == {"accuracy": pytest.approx(5 / 8)}
    assert scores.keys() == {"majority", "type majority", "string match", "form and length"}
    assert references(found, found.targets("train"), Scorer(found, "test")) == {}


def test_rules_read_what_they_say():
    part = tuple(replace(s, upos=("X",) * len(s)) for s in DOCUMENT)
    splits = {
        split: tuple(replace(s, id=split + s.id, document=split) for s in part)
        for split in ("train", "dev", "test")
    }
    # A second type of entity, since one is nothing to tell apart.
    animal = replace(BOB.mentions[0], type="animal")
    splits["train"] = (
        replace(splits["train"][0], mentions=(*ANNA.mentions, animal)),
        *splits["train"][1:],
    )
    for its in (ENTITIES, COREFERENCE):
        report = check_task(its, corpus_of(**splits))
        assert (report.errors, report.read_layers) == ((), {*its.needs})


def test_types_of_entities():
    given = Sentence(
        "s",
        "en",
        ("My", "old", "dog", "saw", "her"),
        upos=("PRON", "ADJ", "NOUN", "VERB", "PRON"),
        heads=(2, 2, 3, ROOT, 3),
        mentions=(
            Mention("1", "animal", (0, 3)),
            Mention("2", "person", (0, 1)),
            Mention("3", "", (4, 5)),
            Mention("4", "person", (4, 5), "1/2"),
            Mention("5", "person", (4, 4)),
        ),
    )
    assert ENTITIES.examples(given) == [
        Example("animal", (0, 3), type="dog", groups=("common noun or other",)),
        Example("person", (0, 1), type="my", groups=("pronoun",)),
        Excluded("no type of entity"),
        Excluded("part of a discontinuous mention"),
        Excluded("mention without words"),
    ]


def test_windows_have_no_frames():
    with pytest.raises(UserError, match="'far': windows of several sentences have no frames"):
        task("far", version=1, needs=["mentions", "frames"], metric="accuracy", window=2)


@pytest.mark.real_data
def test_pairs_of_gum_are_balanced_at_each_distance(real_data):
    corpus = find_corpus("gum", data_dir=real_data, limit=400).load()
    for part in collect_examples(COREFERENCE, corpus, "masked").splits.values():
        by_distance = Counter((e.groups[0], e.label) for e in part.examples)
        distances = {distance for distance, _ in by_distance}
        assert len(distances) == 3
        for distance in distances:
            assert by_distance[distance, "same"] == by_distance[distance, "other"] > 100
