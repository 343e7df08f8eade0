"""Tasks of meaning, on a hand-made sentence: ratings of annotators, and senses."""

import pytest
from rules import corpus_of

from probes.data.sentence import Frame, Rating, Sentence
from probes.examples.examples import NotServedError, collect_examples
from probes.examples.scoring import Scorer, has_types, references
from probes.tasks.builtin import tasks
from probes.tasks.proto_roles import OF_ADVERBIALS
from probes.tasks.task import Example

WORDS = ("The", "cook", "burnt", "it", "yesterday")
RATINGS = (
    Rating("protoroles", (2, 1), {"instigation": 1.3, "volition": -0.4, "sentient": 0.001}),
    Rating("protoroles", (2, 3), {"instigation": -0.0, "change_of_state": 2.0}),
    Rating("protoroles", (2, 4), {"manner": -1.0, "time": 1.5}),
    Rating("factuality", (2,), {"factual": 1.1}),
    Rating("genericity", (1,), {"arg-particular": 1.2, "arg-kind": -1.1, "arg-abstract": -1.1}),
    Rating("genericity", (2,), {"pred-particular": 1.2, "pred-dynamic": 0.9}),
    Rating("wordsense", (1,), {"supersense-noun.person": 1.5, "supersense-noun.act": -3.0}),
)


def of(name, ratings=RATINGS):
    return tasks.get(name).examples(Sentence("1", "en", WORDS, ratings=ratings))


def test_proto_roles_are_the_properties_rated_above_0():
    assert of("proto-roles") == [
        Example(
            ("instigation", "sentient"), (2, 3), (1, 2), type="cook", groups=("0 words between",)
        ),
        Example(("change_of_state",), (2, 3), (3, 4), type="it", groups=("0 words between",)),
        OF_ADVERBIALS,
    ]


def test_factuality_is_the_rating():
    assert of("factuality") == [Example(1.1, (2, 3), type="burnt", groups=("happened",))]
    (other,) = of("factuality", (Rating("factuality", (3,), {"factual": -0.2}),))
    assert (other.label, other.groups) == (-0.2, ("did not happen",))


@pytest.mark.parametrize(
    ("name", "label", "span"),
    [
        ("supersense", ("person",), (1, 2)),
        ("argument-genericity", ("particular",), (1, 2)),
        ("predicate-genericity", ("particular", "dynamic"), (2, 3)),
    ],
)
def test_labels_of_words(name, label, span):
    assert of(name) == [Example(label, span, type=WORDS[span[0]])]


def predicate(number, roleset):
    words = (f"w{number}", "x")
    return Sentence(str(number), "en", words, frames=(Frame(roleset, (0, 1), ()),))


def corpus_of_senses(**rolesets):
    """Sentences with a predicate each."""
    return corpus_of(
        **{
            split: [predicate(f"{split}{i}", roleset) for i, roleset in enumerate(part)]
            for split, part in rolesets.items()
        }
    )


def test_senses_are_those_of_lemmas_that_have_several_in_train():
    corpus = corpus_of_senses(
        train=["run.01", "run.01", "run.02", "see.01", "see.01"],
        dev=["run.02", "see.02"],
        test=["run.01", "run.02", "run.01", "run.05", "go.01"],
    )
    found = collect_examples(tasks.get("sense"), corpus, "masked")
    assert [e.label for e in found.splits["train"].examples] == ["run.01", "run.01", "run.02"]
    # "see" has two senses only if dev is looked at.
    assert [e.label for e in found.splits["dev"].examples] == ["run.02"]
    assert {split: part.excluded for split, part in found.splits.items()} == {
        "train": {"type without several labels in train": 2},
        "dev": {"type without several labels in train": 1},
        "test": {"type without several labels in train": 1},
    }
    assert has_types(found)
    # The most frequent sense of the lemma, right in two of four.
    given = references(found, found.targets("train"), Scorer(found, "test"))
    assert given["type majority"]["accuracy"] == 0.5


def test_a_corpus_without_a_lemma_of_several_senses_does_not_serve_the_task():
    corpus = corpus_of_senses(train=["run.01", "see.01"], dev=["run.01"], test=["run.01"])
    with pytest.raises(NotServedError, match="several labels in train 2"):
        collect_examples(tasks.get("sense"), corpus, "masked")


def test_further_tasks_are_not_served_where_there_are_no_ratings():
    assert tasks.get("supersense").missing({"upos"}) == ("ratings",)
    assert of("supersense", ()) == []
