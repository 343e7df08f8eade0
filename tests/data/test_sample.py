"""The embedded corpus: unchanged, well formed, and as varied as its page says."""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

import pytest

import probes.data.sample
from probes.data.conllu_files import read_conllu
from probes.data.sentence import ROOT, SPLITS, Frame, Sentence
from probes.tasks.agreement import agreement
from probes.tasks.depth import depths
from probes.tasks.task import Example

FOLDER = Path(probes.data.sample.__file__).parent
Splits = dict[str, list[Sentence]]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return {split: list(read_conllu(FOLDER / f"{split}.conllu", "en")) for split in SPLITS}


@pytest.fixture(scope="module")
def sentences(splits: Splits) -> list[Sentence]:
    return [sentence for split in SPLITS for sentence in splits[split]]


def test_the_files_are_those_that_the_generator_wrote() -> None:
    digests = {
        split: sha256((FOLDER / f"{split}.conllu").read_bytes()).hexdigest() for split in SPLITS
    }
    assert digests == {
        "train": "861b8665e6a9ef2fd93df1b5c284158fc26f8afd59d478c7e1eccd05617c0850",
        "dev": "0462202d955f8d88f2f3a5a9ad4be93be8f217598e52ee2b012e126f7b3afd09",
        "test": "3632445470c77b499233bfc8a4cdcdf96f1b6222977bfadc22238fce1c40e01f",
    }


def test_size(splits: Splits) -> None:
    assert {split: len(found) for split, found in splits.items()} == {
        "train": 2000, "dev": 400, "test": 400,
    }  # fmt: skip
    assert sum(path.stat().st_size for path in FOLDER.glob("*.conllu")) <= 3_000_000


def test_no_sentence_twice(sentences: list[Sentence]) -> None:
    assert len({" ".join(s.words).lower() for s in sentences}) == 2800
    assert len({s.id for s in sentences}) == 2800


def test_every_layer_is_there_for_every_word(sentences: list[Sentence]) -> None:
    for s in sentences:
        for layer in (s.upos, s.xpos, s.feats, s.heads, s.deprels, s.chunks):
            assert len(layer) == len(s)
        assert s.frames


def test_one_root_and_no_cycle(sentences: list[Sentence]) -> None:
    for s in sentences:
        assert [i for i, head in enumerate(s.heads) if head == ROOT] == [
            i for i, relation in enumerate(s.deprels) if relation == "root"
        ]
        assert s.heads.count(ROOT) == 1
        assert depths(s.heads).count(0) == 1


def test_trees_are_projective(sentences: list[Sentence]) -> None:
    def crosses(s: Sentence) -> bool:
        arcs = [(min(i, h), max(i, h)) for i, h in enumerate(s.heads) if h != ROOT]
        return any(a < c < b < d for a, b in arcs for c, d in arcs)

    assert not any(crosses(s) for s in sentences)


def test_chunk_tags_are_valid_bio(sentences: list[Sentence]) -> None:
    kinds = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "INTJ"}
    for s in sentences:
        for before, tag in zip(("O", *s.chunks), s.chunks, strict=False):
            assert tag == "O" or (tag[:2] in ("B-", "I-") and tag[2:] in kinds)
            assert not tag.startswith("I-") or before[2:] == tag[2:]


def test_chunks_end_at_their_heads(sentences: list[Sentence]) -> None:
    """The last word of an NP chunk is a noun or pronoun, of a PP chunk a preposition."""
    last = {"NP": {"NOUN", "PROPN", "PRON"}, "PP": {"ADP"}, "VP": {"VERB", "AUX"}}
    last |= {"SBAR": {"SCONJ"}, "PRT": {"ADP"}, "ADJP": {"ADJ"}, "INTJ": {"INTJ"}}
    for s in sentences:
        for i, tag in enumerate(s.chunks):
            ends = i + 1 == len(s) or s.chunks[i + 1] != f"I-{tag[2:]}"
            if ends and tag[2:] in last:
                assert s.upos[i] in last[tag[2:]], s.id


def test_frames_are_valid(sentences: list[Sentence]) -> None:
    for s in sentences:
        for frame in s.frames:
            spans = [frame.predicate, *(span for _, span in frame.arguments)]
            covered = [i for start, end in spans for i in range(start, end)]
            assert len(covered) == len(set(covered))
            assert all(0 <= start < end <= len(s) for start, end in spans)
            labels = {label for label, _ in frame.arguments}
            for label in labels:
                assert label[:2] not in ("R-", "C-") or label == "C-V" or label[2:] in labels


def test_every_lexical_verb_is_a_predicate(sentences: list[Sentence]) -> None:
    for s in sentences:
        verbs = {i for i, tag in enumerate(s.upos) if tag == "VERB"}
        copulas = {i for i, relation in enumerate(s.deprels) if relation == "cop"}
        assert sorted(f.predicate[0] for f in s.frames) == sorted(verbs | copulas)


def test_finite_verbs_agree_with_nominal_subjects(sentences: list[Sentence]) -> None:
    """The subject's own number is the verb's, but for coordinated subjects."""
    for s in sentences:
        for example in agreement(s):
            if isinstance(example, Example) and example.reference != example.label:
                assert example.cue is not None
                assert any(
                    head == example.cue and relation == "conj"
                    for head, relation in zip(s.heads, s.deprels, strict=True)
                )


def test_agreement_has_attractors_in_a_third_of_the_examples(splits: Splits) -> None:
    counts = {}
    for split, found in splits.items():
        examples = [e for s in found for e in agreement(s) if isinstance(e, Example)]
        with_attractor = sum("1+ attractors" in e.groups for e in examples)
        singular = sum(e.label == "Sing" for e in examples)
        counts[split] = len(examples)
        assert 0.28 <= with_attractor / len(examples) <= 0.40
        assert 0.45 <= singular / len(examples) <= 0.55
    assert counts == {"train": 1684, "dev": 321, "test": 340}


def test_some_nouns_show_no_number(sentences: list[Sentence]) -> None:
    numbers = defaultdict(set)
    for s in sentences:
        for form, tag, feats in zip(s.words, s.upos, s.feats, strict=True):
            if tag == "NOUN":
                numbers[form.lower()].add(feats["Number"])
    unmarked = {form for form, found in numbers.items() if len(found) == 2}
    assert unmarked == {"sheep", "fish", "deer", "aircraft"}


def test_deep_trees(sentences: list[Sentence]) -> None:
    deepest = [max(depths(s.heads)) for s in sentences]
    assert sum(depth >= 5 for depth in deepest) == 616
    assert sum(depth >= 6 for depth in deepest) == 213
    assert max(deepest) == 8


def test_words_with_several_parts_of_speech(sentences: list[Sentence]) -> None:
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for s in sentences:
        for form, tag in zip(s.words, s.upos, strict=True):
            tags[form.lower()][tag] += 1
    twofold = {form for form, found in tags.items() if len(found) > 1}
    assert len(twofold) == 174
    named = "run light watch that book plant cook guide fish to like since before after present"
    named += " open close can dry clean fast hard well one there no which have will may saw"
    assert set(named.split()) <= twofold
    assert len(tags["that"]) == 3
    assert len(tags["light"]) == 3


def test_words_that_train_lacks(splits: Splits) -> None:
    forms = {split: {w.lower() for s in found for w in s.words} for split, found in splits.items()}
    unseen = {split: forms[split] - forms["train"] for split in ("dev", "test")}
    assert {split: len(found) for split, found in unseen.items()} == {"dev": 137, "test": 228}
    words = [w.lower() for s in splits["test"] for w in s.words]
    assert sum(w in unseen["test"] for w in words) / len(words) == pytest.approx(0.189, abs=0.001)


def test_a_sixth_of_the_lemmas_of_open_classes_is_kept_from_train(splits: Splits) -> None:
    open_classes = {"NOUN", "PROPN", "VERB", "ADJ", "ADV"}
    train, dev, test = (
        {
            lemma.lower()
            for s in splits[split]
            for lemma, tag in zip(s.lemmas, s.upos, strict=True)
            if tag in open_classes
        }
        for split in SPLITS
    )
    assert len(train | dev | test) == 681
    assert len(test - train) == 114
    assert len(test - train - dev) == 58
    assert dev - train < test


def test_both_sides_of_each_alternation(sentences: list[Sentence]) -> None:
    """Subjects are ARG0 and ARG1 of the same verbs; hearers stand before and after things."""
    subjects: Counter[str] = Counter()
    datives: Counter[bool] = Counter()
    for s in sentences:
        for frame in s.frames:
            arguments = dict(frame.arguments)
            if frame.roleset in ("break.01", "open.01", "roll.01", "sink.01", "burn.01", "cool.01"):
                first = min(arguments, key=lambda label: arguments[label][0])
                subjects[first] += first in ("ARG0", "ARG1")
            if frame.roleset == "give.01" and {"ARG1", "ARG2"} <= set(arguments):
                datives[arguments["ARG2"] < arguments["ARG1"]] += 1
    assert min(subjects["ARG0"], subjects["ARG1"]) > 50
    assert min(datives.values()) > 15


BY_HAND = {
    "Nina hands Penny the plants .": (
        "B-NP B-VP B-NP B-NP I-NP O",
        [Frame("hand.01", (1, 2), (("ARG0", (0, 1)), ("ARG2", (2, 3)), ("ARG1", (3, 5))))],
    ),
    "He appeared to melt all snow .": (
        "B-NP B-VP I-VP I-VP B-NP I-NP O",
        [
            Frame("appear.02", (1, 2), (("ARG1", (0, 1)), ("C-ARG1", (2, 6)))),
            Frame("melt.01", (3, 4), (("ARG0", (0, 1)), ("ARG1", (4, 6)))),
        ],
    ),
    "Pick all paper towels up hard .": (
        "B-VP B-NP I-NP I-NP B-PRT B-ADVP O",
        [Frame("pick_up.04", (0, 1), (("ARG1", (1, 4)), ("C-V", (4, 5)), ("ARGM-MNR", (5, 6))))],
    ),
    "Which windows is she guarding ?": (
        "B-NP I-NP O B-NP B-VP O",
        [Frame("guard.01", (4, 5), (("ARG1", (0, 2)), ("ARG0", (3, 4))))],
    ),
    "The water gate still opened .": (
        "B-NP I-NP I-NP B-ADVP B-VP O",
        [Frame("open.01", (4, 5), (("ARG1", (0, 3)), ("ARGM-TMP", (3, 4))))],
    ),
    "Ponies which hunted are under the lights .": (
        "B-NP B-NP B-VP B-VP B-PP B-NP I-NP O",
        [
            Frame("hunt.01", (2, 3), (("ARG0", (0, 1)), ("R-ARG0", (1, 2)))),
            Frame("be.01", (3, 4), (("ARG1", (0, 3)), ("ARG2", (4, 7)))),
        ],
    ),
    "Host few dances which were being run by some nurses !": (
        "B-VP B-NP I-NP B-NP B-VP I-VP I-VP B-PP B-NP I-NP O",
        [
            Frame("host.01", (0, 1), (("ARG1", (1, 10)),)),
            Frame("run.01", (6, 7), (("ARG1", (1, 3)), ("R-ARG1", (3, 4)), ("ARG0", (7, 10)))),
        ],
    ),
    "I was being asked to be quite present .": (
        "B-NP B-VP I-VP I-VP B-VP I-VP B-ADJP I-ADJP O",
        [
            Frame("ask.02", (3, 4), (("ARG2", (0, 1)), ("ARG1", (4, 8)))),
            Frame("be.01", (5, 6), (("ARG1", (0, 1)), ("ARG2", (6, 8)))),
        ],
    ),
    "Every guide rang Grant 's bell .": (
        "B-NP I-NP B-VP B-NP B-NP I-NP O",
        [Frame("ring.01", (2, 3), (("ARG0", (0, 2)), ("ARG1", (3, 6))))],
    ),
    "The light present was not wooden .": (
        "B-NP I-NP I-NP B-VP O B-ADJP O",
        [Frame("be.01", (3, 4), (("ARG1", (0, 3)), ("ARGM-NEG", (4, 5)), ("ARG2", (5, 6))))],
    ),
}


@pytest.mark.parametrize("text", BY_HAND)
def test_annotation_by_hand(sentences: list[Sentence], text: str) -> None:
    (found,) = [s for s in sentences if " ".join(s.words) == text]
    chunks, frames = BY_HAND[text]
    assert " ".join(found.chunks) == chunks
    assert list(found.frames) == frames


def test_tree_by_hand(sentences: list[Sentence]) -> None:
    text = "Which windows is she guarding ?"
    (found,) = [s for s in sentences if " ".join(s.words) == text]
    assert found.heads == (1, 4, 4, 4, ROOT, 4)
    assert found.deprels == ("det", "obj", "aux", "nsubj", "root", "punct")
    assert found.upos == ("DET", "NOUN", "AUX", "PRON", "VERB", "PUNCT")
    assert found.xpos == ("WDT", "NNS", "VBZ", "PRP", "VBG", ".")
    assert found.feats[2] == {
        "Mood": "Ind", "Number": "Sing", "Person": "3", "Tense": "Pres", "VerbForm": "Fin",
    }  # fmt: skip
