"""The measurement as a whole, on vectors that a test plants, against loops over all words."""

from dataclasses import replace

import numpy as np
import pytest
from corpus_records import record_of
from drawn import view_of
from planted_vectors import PlantedVectors

from probes.data.sentence import Corpus, Sentence
from probes.families.geometry import GeometryOptions
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.records.row import Rows

FORMS = [f"w{i}" for i in range(12)]


def corpus_of_types(n=90, seed=0, documents=30):
    """Sentences of 1 to 9 words; a tag is decided by the word."""
    rng = np.random.default_rng(seed)
    test = []
    for number in range(n):
        words = tuple(rng.choice(FORMS, rng.integers(1, 10)))
        tags = tuple("NV"[int(word[1:]) % 2] for word in words)
        document = f"d{number % documents}" if documents else ""
        test.append(Sentence(f"s{number}", "en", words, tags, document=document))
    return Corpus("toy", "1", "MIT", {"train": (), "dev": (), "test": tuple(test)})


def vectors_of(sentence, layer):
    """A part of the word, of the place and of the sentence, more of the sentence further up."""
    rng = np.random.default_rng(int(sentence.id[1:]) + 1)
    types = np.random.default_rng(0).normal(0.4, 1, (12, 7))
    own = types[[int(word[1:]) for word in sentence.words]]
    return own + layer * rng.normal(size=7) + rng.normal(0, 0.3, (len(sentence), 7))


def context(of=None, layers=(0, 2), vectors=vectors_of, **options):
    return PlantedVectors(of or corpus_of_types(), layers, GeometryOptions(**options), vectors)


@pytest.fixture(scope="module")
def findings():
    return get_measurement("geometry")(context())


def numbers(found):
    """Rows by metric, layer and places on axes."""
    rows = Rows.of(found.rows)
    by_place = {(row.metric, row.layer, *row.axes.values()): row for row in rows}
    assert len(by_place) == len(rows)
    return by_place


def computed(**more):
    return numbers(get_measurement("geometry")(context(**more)))


def of_layer(rows, layer):
    """The rows of a layer by itself, by metric and places on axes."""
    its = {(key[0], *key[2:]): row for key, row in rows.items() if key[1] == layer}
    return {key: row for key, row in its.items() if "cka" not in key[0]}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def pairs(rows):
    u = unit(rows)
    return [u[i] @ u[j] for i in range(len(u)) for j in range(len(u)) if i != j]


def test_every_number_is_that_of_loops_over_words(findings):
    its, rows = context(), numbers(findings)
    sentences = its.corpus.splits["test"]
    for layer in (0, 2):
        vectors = its.words("test", layer).astype(float)
        anisotropy = np.mean(pairs(vectors))
        even = (vectors - vectors.mean(0)) / vectors.std(0)
        lengths = np.linalg.norm(vectors, axis=1)

        forms = np.array([word for s in sentences for word in s.words])
        number = its.sentence_numbers("test")
        frequent = [w for w in FORMS if len(set(number[forms == w])) >= 5]
        assert findings.facts["types"] == len(frequent) > 5
        similar = np.mean([np.mean(pairs(vectors[forms == w])) for w in frequent])
        own = [vectors[forms == w] - vectors[forms == w].mean(0) for w in frequent]
        sigma = [np.linalg.svd(each, compute_uv=False) ** 2 for each in own]
        inside = [
            np.mean(unit(vectors[number == i]) @ unit(vectors[number == i].mean(0)))
            for i, s in enumerate(sentences)
            if len(s) > 1
        ]
        expected = {
            "anisotropy": anisotropy,
            "standardised_anisotropy": np.mean(pairs(even)),
            "norm_mean": lengths.mean(),
            "norm_sd": lengths.std(ddof=1),
            "self_similarity": similar,
            "self_similarity_baseline": anisotropy,
            "self_similarity_adjusted": similar - anisotropy,
            "maximum_explainable_variance": np.mean([s[0] / s.sum() for s in sigma]),
            "intra_sentence_similarity": np.mean(inside),
            "zero_vectors": 0,
        }
        for metric, value in expected.items():
            assert rows[metric, layer].value == pytest.approx(value, abs=1e-6), metric
    assert findings.facts["words"] == len(forms)
    assert (findings.facts["sentences"], findings.facts["resampled"]) == (90, "documents")
    assert (findings.facts["upos_items"], findings.facts["upos_classes"]) == (len(forms), 2)


ADJUSTED = ("self_similarity", "intra_sentence_similarity", "maximum_explainable_variance")


def test_arrays_hold_what_is_averaged(findings):
    rows, n_types = numbers(findings), findings.facts["types"]
    assert findings.arrays["intra_sentence"].shape == (2, 90, 2)
    for place, layer in enumerate((0, 2)):
        inside = np.nanmean(findings.arrays["intra_sentence"][place], axis=0)
        explained = findings.arrays["explainable"][place].mean(0)
        for name, means in zip(ADJUSTED[1:], (inside, explained), strict=True):
            both = [rows[name, layer].value, rows[f"{name}_baseline", layer].value]
            assert means == pytest.approx(both, abs=1e-6)
        assert findings.arrays["self_similarity"][place].shape == (n_types,)
        mean = findings.arrays["self_similarity"][place].mean()
        assert mean == pytest.approx(rows["self_similarity", layer].value, abs=1e-6)


def test_intervals_hold_the_numbers_that_they_are_of(findings):
    rows, name = numbers(findings), "intra_sentence_similarity"
    for layer in (0, 2):
        for metric in ("anisotropy", name, f"{name}_baseline", f"{name}_adjusted"):
            each = rows[metric, layer]
            assert each.low < each.value < each.high
            assert each.why == ""
        # 12 word types are too few to resample.
        assert rows["self_similarity", layer].why == "fewer than 20 word types"
        assert rows["self_similarity", layer].low is None


def test_words_that_are_the_same_wherever_they_are():
    """A static embedding: self-similarity and explainable variance are 1."""
    static = np.random.default_rng(3).normal(size=(12, 7))
    rows = computed(vectors=lambda s, layer: static[[int(word[1:]) for word in s.words]])
    assert rows["self_similarity", 0].value == pytest.approx(1, abs=1e-6)
    assert rows["maximum_explainable_variance", 0].value == pytest.approx(1, abs=1e-6)
    assert rows["maximum_explainable_variance_baseline", 0].value < 0.9
    below, above = of_layer(rows, 0), of_layer(rows, 2)
    assert {key: row._replace(layer=2) for key, row in below.items()} == above


def test_baselines_of_words_without_context_are_what_they_are_baselines_of():
    """Independent Gaussian words: sentences and types are like random ones."""
    rng = np.random.default_rng(4)
    drawn = {f"s{i}": rng.normal(0.5, 1, (9, 7)) for i in range(600)}
    vectors = lambda s, layer: drawn[s.id][: len(s)]  # noqa: E731
    rows = computed(of=corpus_of_types(600), layers=(0,), vectors=vectors)
    for name in ADJUSTED:
        assert rows[f"{name}_adjusted", 0].value == pytest.approx(0, abs=0.02)
    assert rows["intra_sentence_similarity", 0].value > 0.5


def test_dominant_dimensions_are_named_with_their_shares():
    def shifted(sentence, layer):
        return vectors_of(sentence, 0) + np.array([0, 0, 9, 0, 0, -6, 0])

    rows = computed(layers=(0,), vectors=shifted)
    shares = {key[2:]: row.value for key, row in rows.items() if key[0] == "share_of_anisotropy"}
    assert list(shares)[:2] == [(1, 2), (2, 5)]
    anisotropy = rows["anisotropy", 0].value
    assert shares[1, 2] == pytest.approx(rows["contribution", 0, 1, 2].value / anisotropy)
    assert len(shares) == 3
    assert 0.9 < sum(shares.values()) <= 1.001
    assert abs(rows["standardised_anisotropy", 0].value) < 0.1 < anisotropy


def test_shares_are_not_given_where_there_is_nothing_to_share():
    rng = np.random.default_rng(5)
    vectors = lambda s, layer: rng.normal(size=(len(s), 7))  # noqa: E731
    found = get_measurement("geometry")(context(layers=(0,), vectors=vectors))
    rows = numbers(found)
    assert rows["anisotropy", 0].low < 0
    shares = [row.value for key, row in rows.items() if key[0] == "share_of_anisotropy"]
    assert shares == [None] * 3
    dimensions = [key[3] for key in rows if key[0] == "contribution"]
    top = tables(found)[1]
    assert top.texts == [("0", *(f"{d}: –" for d in dimensions))]


def test_the_same_seed_gives_the_same_and_another_only_other_baselines_and_clusters(findings):
    rows, others = numbers(findings), computed(seed=7)
    assert computed() == rows
    for layer in (0, 2):
        of_types = (f"self_similarity{x}" for x in ("", "_baseline", "_adjusted"))
        for name in ("anisotropy", *of_types, "intra_sentence_similarity"):
            assert others[name, layer] == rows[name, layer]
        for name in ADJUSTED[1:]:
            assert others[f"{name}_baseline", layer] != rows[f"{name}_baseline", layer]


def test_a_layer_is_measured_the_same_whatever_else_is(findings):
    assert of_layer(computed(layers=(2,)), 2) == of_layer(numbers(findings), 2)


def test_rows_stand_layer_by_layer_and_each_two_layers_once(findings):
    rows = numbers(findings)
    kinds = list(dict.fromkeys(key[0] for key in rows))
    assert (kinds[0], *kinds[-2:]) == ("anisotropy", "cka", "unbiased_cka")
    assert [key for key in rows if key[0] == "cka"] == [("cka", 2, 0)]
    assert rows["cka", 2, 0].axes == {"other_layer": 0}
    assert rows["ami", 2, "upos"].axes == {"labels": "upos"}
    assert [key[1] for key in rows][:-2] == sorted(key[1] for key in rows)[:-2]
    assert {row.split for row in rows.values()} == {"test"}


def tables(found):
    return measurement_tables(get_measurement("geometry"), [record_of("geometry", found, 2)])


def test_a_table_of_clusters_says_why_they_have_no_interval():
    few = get_measurement("geometry")(context(corpus_of_types(19, documents=0)))
    assert numbers(few)["ami", 0, "upos"].low is None
    assert "NMI, AMI: fewer than 20 sentences." in tables(few)[3].notes


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_words_gives_what_it_can_and_says_why_not(n):
    words = [("w1",), ("w1", "w2"), ("w1", "w2", "w1")][n - 1]
    tiny = Sentence("s0", "en", words, ("X",) * n)
    of = Corpus("t", "1", "MIT", {"train": (), "dev": (), "test": (tiny,)})
    found = get_measurement("geometry")(context(of))
    rows = numbers(found)
    assert rows["self_similarity", 0].value is None
    assert rows["maximum_explainable_variance_adjusted", 0].why == "nothing to average"
    assert (rows["intra_sentence_similarity", 0].value is None) == (n == 1)
    assert (rows["anisotropy", 0].value is None) == (n == 1)
    assert (rows["cka", 2, 0].value is None) == (n == 1)
    assert not {"nmi", "ami"} & {key[0] for key in rows}
    notes = [note for table in tables(found) for note in table.notes]
    assert rows["unbiased_cka", 2, 0].value is None
    assert "Clusters against upos: none: test has fewer than two classes." in notes
    assert len(rows) > 20
    one = {"a": record_of("geometry", found, 2)}
    assert view_of("geometry", "clusters", one)[1] == {"a": "there is no record of it"}


def test_a_corpus_without_annotation_has_no_clusters_and_zeros_and_windows_are_counted():
    of = corpus_of_types()
    bare = tuple(replace(s, upos=()) for s in of.splits["test"])
    its = context(
        replace(of, splits={**of.splits, "test": bare}),
        vectors=lambda s, layer: vectors_of(s, layer) * (s.id != "s3"),
    )
    its.long = lambda sentence: sentence.id in ("s1", "s2")
    found = get_measurement("geometry")(its)
    rows = numbers(found)
    assert not any(name.startswith("upos") for name in found.facts)
    assert found.facts["in_several_windows"] == 2
    zeros = len(bare[3])
    assert [rows["zero_vectors", layer].value for layer in (0, 2)] == [zeros, zeros]
    space, *others = tables(found)
    titles = "top dimensions, with share of anisotropy, %", "context", "CKA by other layer"
    assert [table.title for table in others] == [f"m · c · geometry · {x}" for x in titles]
    assert any("2 sentences longer than the model's window" in x for x in space.notes)
    assert any(f"{zeros} at layer 0, {zeros} at layer 2" in x for x in space.notes)
    assert not any("Clusters" in note for note in space.notes)
