"""What is resampled: documents where a corpus names enough of them, or else sentences."""

import hashlib
import struct

import numpy as np
import pytest
from planted_context import corpus

from probes.data.sentence import Corpus
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer, count_examples
from probes.statistics.gold import Gold
from probes.statistics.partition import Partition, by_sentence, partition
from probes.tasks.builtin import tasks


def names(n):
    return [f"d{i}" for i in range(n)]


def test_sentences_of_a_document_are_one_cluster_wherever_they_stand():
    found = partition([*names(20), "d3", "d0"])
    assert found.clusters == "documents"
    assert found.of_sentence.tolist() == [*range(20), 3, 0]
    assert found.n == 20


@pytest.mark.parametrize(("n", "clusters"), [(19, "sentences"), (20, "documents")])
def test_at_least_twenty_documents_are_resampled(n, clusters):
    found = partition(names(n) * 2)
    assert found.clusters == clusters
    assert found.n == (n if clusters == "documents" else 2 * n)


def test_one_sentence_without_a_document_is_enough_for_sentences():
    found = partition([*names(40), "", "d0"])
    assert (found.clusters, found.of_sentence.tolist()) == ("sentences", list(range(42)))
    assert partition([""] * 30).clusters == "sentences"
    assert partition([]).n == 0


def test_the_digest_is_that_of_the_grouping():
    found = partition(names(20) * 2)
    expected = hashlib.sha256(struct.pack("<40q", *range(20), *range(20))).hexdigest()
    assert found.digest == expected
    renamed = partition([f"other {name}" for name in names(20) * 2])
    assert renamed.digest == expected
    assert by_sentence(40).digest != expected


def gold(**fields):
    given = {
        "labels": np.array([0, 1, 1]),
        "sentence": np.array([0, 0, 2]),
        "classes": ("a", "b"),
        "punctuation": np.zeros(3, dtype=bool),
        "partition": Partition("documents", np.array([0, 1, 1])),
    }
    return Gold(**{**given, **fields})


def test_clusters_are_those_of_sentences_that_have_examples():
    found = gold()
    assert (found.n_sentences, found.clusters.tolist(), found.n_clusters) == (2, [0, 1], 2)
    assert gold(partition=None).clusters.tolist() == [0, 1]
    part = found.part(np.array([False, False, True]))
    # Of a part, the whole split is still resampled.
    assert (part.clusters.tolist(), part.n_clusters) == ([1], 2)


def test_only_the_same_labels_in_the_same_sentences_and_clusters_have_the_same_digest():
    others = [
        gold(labels=np.array([0, 1, 0])),
        gold(sentence=np.array([0, 2, 2])),
        gold(partition=by_sentence(3)),
    ]
    assert gold().digest == gold(classes=("a", "other")).digest
    assert len({gold().digest, *(other.digest for other in others)}) == 4


def in_documents(splits, document):
    """A corpus whose sentences name documents, by their number in the split."""
    from dataclasses import replace

    made = corpus(splits)
    named = {
        name: tuple(replace(s, document=document(i)) for i, s in enumerate(sentences))
        for name, sentences in made.splits.items()
    }
    return Corpus(made.name, made.version, made.licence, named)


@pytest.mark.parametrize(
    ("n", "resampled", "clusters"), [(25, "documents", 25), (5, "sentences", 50)]
)
def test_a_task_s_counts_say_what_is_resampled(n, resampled, clusters):
    sentences = [["w0", "w1", "w2"]] * 50
    made = in_documents(dict.fromkeys(("train", "dev", "test"), sentences), lambda i: f"d{i % n}")
    examples = collect_examples(tasks.get("pos"), made, "masked")
    scorer = Scorer(examples, "test")
    counts = count_examples(examples, scorer)
    assert (counts.resampled, counts.clusters) == (resampled, clusters)
    assert counts.test_digest == scorer.gold.digest
