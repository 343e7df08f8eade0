"""The measurement as a whole, on vectors that a test plants, against loops over all words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from planted_vectors import PlantedVectors

from probes.data.sentence import Corpus, Sentence
from probes.measurements.geometry.charts import FIGURES
from probes.measurements.geometry.geometry import Geometry, Options
from probes.records.curves import Curves

FORMS = [f"w{i}" for i in range(12)]


def corpus(n=90, seed=0, documents=30):
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
    return PlantedVectors(of or corpus(), layers, Options(**options), vectors)


@pytest.fixture(scope="module")
def found():
    return Geometry().compute(context())


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def pairs(rows):
    u = unit(rows)
    return [u[i] @ u[j] for i in range(len(u)) for j in range(len(u)) if i != j]


def test_every_number_is_that_of_loops_over_words(found):
    its = context()
    sentences = its.corpus.splits["test"]
    for place, layer in enumerate((0, 2)):
        of, rows = found.payload.layers[place], its.words("test", layer).astype(float)
        assert of.layer == layer
        assert of.anisotropy.value == pytest.approx(np.mean(pairs(rows)), abs=1e-6)
        even = (rows - rows.mean(0)) / rows.std(0)
        assert of.standardised_anisotropy == pytest.approx(np.mean(pairs(even)), abs=1e-6)
        lengths = np.linalg.norm(rows, axis=1)
        assert of.norm_mean == pytest.approx(lengths.mean())
        assert of.norm_sd == pytest.approx(lengths.std(ddof=1))

        forms = np.array([word for s in sentences for word in s.words])
        number = its.sentence_numbers("test")
        frequent = [w for w in FORMS if len(set(number[forms == w])) >= 5]
        assert found.payload.types == len(frequent) > 5
        similar = [np.mean(pairs(rows[forms == w])) for w in frequent]
        assert of.self_similarity.raw.value == pytest.approx(np.mean(similar), abs=1e-6)
        difference = np.mean(similar) - of.anisotropy.value
        assert of.self_similarity.adjusted.value == pytest.approx(difference, abs=1e-6)
        own = [rows[forms == w] - rows[forms == w].mean(0) for w in frequent]
        sigma = [np.linalg.svd(each, compute_uv=False) ** 2 for each in own]
        explained = np.mean([s[0] / s.sum() for s in sigma])
        assert of.maximum_explainable_variance.raw.value == pytest.approx(explained, abs=1e-6)
        inside = [
            np.mean(unit(rows[number == i]) @ unit(rows[number == i].mean(0)))
            for i, s in enumerate(sentences)
            if len(s) > 1
        ]
        assert of.intra_sentence_similarity.raw.value == pytest.approx(np.mean(inside), abs=1e-6)
    assert (found.payload.words, found.payload.far_words) == (len(forms), 0)
    assert found.payload.sentences == 90


def test_arrays_hold_what_is_averaged(found):
    n_types = found.payload.types
    assert found.arrays["intra_sentence"].shape == (2, 90, 2)
    for place, of in enumerate(found.payload.layers):
        inside = np.nanmean(found.arrays["intra_sentence"][place], axis=0)
        similarity = of.intra_sentence_similarity
        assert inside == pytest.approx([similarity.raw.value, similarity.baseline.value], abs=1e-6)
        assert found.arrays["self_similarity"][place].shape == (n_types,)
        mean = found.arrays["self_similarity"][place].mean()
        assert mean == pytest.approx(of.self_similarity.raw.value, abs=1e-6)
        explained, similarity = (
            found.arrays["explainable"][place].mean(0),
            of.maximum_explainable_variance,
        )
        assert explained == pytest.approx(
            [similarity.raw.value, similarity.baseline.value], abs=1e-6
        )


def test_intervals_hold_the_numbers_that_they_are_of(found):
    for of in found.payload.layers:
        whole = of.similarity("intra_sentence_similarity")
        for each in (of.anisotropy, whole.raw, whole.baseline, whole.adjusted):
            assert each.interval[0] < each.value < each.interval[1]
        # 12 word types are too few to resample.
        assert of.self_similarity.raw.missing == "fewer than 20 word types"


def test_the_more_of_a_sentence_is_in_its_words_the_more_they_are_alike(found):
    below, above = found.payload.layers
    assert below.self_similarity.adjusted.value > above.self_similarity.adjusted.value + 0.2
    name = "intra_sentence_similarity"
    assert below.similarity(name).adjusted.interval[0] < 0.03
    assert above.similarity(name).adjusted.interval[0] > 0.1
    assert below.clusters["upos"].ami.value > above.clusters["upos"].ami.value


def test_words_that_are_the_same_wherever_they_are(found):
    """A static embedding: self-similarity and explainable variance are 1, places say nothing."""
    static = np.random.default_rng(3).normal(size=(12, 7))
    its = context(vectors=lambda s, layer: static[[int(word[1:]) for word in s.words]])
    of, same = Geometry().compute(its).payload.layers
    assert of.self_similarity.raw.value == pytest.approx(1, abs=1e-6)
    assert of.maximum_explainable_variance.raw.value == pytest.approx(1, abs=1e-6)
    assert of.maximum_explainable_variance.baseline.value < 0.9
    assert of.position_share_within_types is None
    assert same == of.model_copy(update={"layer": 2})


def test_baselines_of_words_without_context_are_what_they_are_baselines_of():
    """Independent Gaussian words: sentences and types are like random ones."""
    rng = np.random.default_rng(4)
    drawn = {f"s{i}": rng.normal(0.5, 1, (9, 7)) for i in range(600)}
    its = context(corpus(600), (0,), lambda s, layer: drawn[s.id][: len(s)])
    (of,) = Geometry().compute(its).payload.layers
    for name in ("self_similarity", "intra_sentence_similarity", "maximum_explainable_variance"):
        assert of.similarity(name).adjusted.value == pytest.approx(0, abs=0.02)
    assert of.intra_sentence_similarity.raw.value > 0.5
    assert abs(of.position_share) < 0.01
    assert abs(of.position_share_within_types) < 0.01


def test_dominant_dimensions_are_named_with_their_shares():
    def shifted(sentence, layer):
        return vectors_of(sentence, 0) + np.array([0, 0, 9, 0, 0, -6, 0])

    (of,) = Geometry().compute(context(layers=(0,), vectors=shifted)).payload.layers
    assert [x.dimension for x in of.dominant[:2]] == [2, 5]
    assert of.dominant[0].share == pytest.approx(of.dominant[0].contribution / of.anisotropy.value)
    assert 0.9 < sum(x.share for x in of.dominant) <= 1.001
    assert abs(of.standardised_anisotropy) < 0.1 < of.anisotropy.value


def test_shares_are_not_given_where_there_is_nothing_to_share():
    rng = np.random.default_rng(5)
    its = context(layers=(0,), vectors=lambda s, layer: rng.normal(size=(len(s), 7)))
    (of,) = Geometry().compute(its).payload.layers
    assert of.anisotropy.interval[0] < 0
    assert [x.share for x in of.dominant] == [None] * 3


def test_the_same_seed_gives_the_same_and_another_only_other_baselines_and_clusters(found):
    again = Geometry().compute(context())
    assert again.payload == found.payload
    for one, other in zip(
        found.payload.layers, Geometry().compute(context(seed=7)).payload.layers, strict=True
    ):
        assert one.anisotropy == other.anisotropy
        assert one.self_similarity == other.self_similarity
        assert one.intra_sentence_similarity.raw == other.intra_sentence_similarity.raw
        name = "intra_sentence_similarity"
        assert one.similarity(name).baseline != other.similarity(name).baseline
        assert (
            one.maximum_explainable_variance.baseline != other.maximum_explainable_variance.baseline
        )


def test_a_layer_is_measured_the_same_whatever_else_is(found):
    (alone,) = Geometry().compute(context(layers=(2,))).payload.layers
    assert alone == found.payload.layers[1]


def test_the_order_of_sentences_does_not_matter(found):
    of = corpus()
    order = np.random.default_rng(6).permutation(90)
    mixed = replace(of, splits={**of.splits, "test": tuple(of.splits["test"][i] for i in order)})
    other = Geometry().compute(context(mixed)).payload
    assert np.array(other.cka) == pytest.approx(np.array(found.payload.cka), abs=1e-5)
    for one, two in zip(found.payload.layers, other.layers, strict=True):
        for name in ("standardised_anisotropy", "participation_ratio", "norm_mean", "norm_sd"):
            assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-4)
        for name in ("position_share", "position_share_within_types"):
            assert getattr(two, name) == pytest.approx(getattr(one, name), abs=1e-5)
        raw = [
            (x.anisotropy.value, *(x.similarity(n).raw.value for n in SIMILAR)) for x in (one, two)
        ]
        assert raw[0] == pytest.approx(raw[1], abs=1e-6)


SIMILAR = ("self_similarity", "intra_sentence_similarity", "maximum_explainable_variance")


def record(payload):
    corpus = SimpleNamespace(name="toy", limited=False)
    model = SimpleNamespace(name="m")
    return SimpleNamespace(payload=payload, model=model, corpus=corpus, dtype="float32")


def test_numbers_are_those_of_the_payload_each_once(found):
    numbers = list(Geometry().numbers(record(found.payload)))
    keys = [(n.metric, n.layer, *n.axes.items()) for n in numbers]
    assert len(set(keys)) == len(keys)
    of = found.payload.layers[1]
    by_name = {(n.metric, n.layer): n for n in numbers}
    assert by_name["anisotropy", 2][1:5] == (of.anisotropy.value, 2, *of.anisotropy.interval)
    assert by_name["position_share", 2].value == of.position_share
    assert by_name["cka", 2].value == found.payload.cka[1][0]
    assert by_name["cka", 2].axes == {"other_layer": 0}
    assert ("cka", 0) not in by_name
    assert by_name["ami", 2].axes == {"labels": "upos"}
    shares = [n for n in numbers if n.metric == "contribution" and n.layer == 2]
    assert [n.axes["dimension"] for n in shares] == [x.dimension for x in of.dominant]


def test_tables_show_them_with_half_intervals(found):
    space, inside, clusters, cka = Geometry().tables(record(found.payload))
    of = found.payload.layers[1]
    low, high = of.anisotropy.interval
    expected = f"{of.anisotropy.value:.3f} ± {(high - low) / 2:.3f}".replace("0.", ".")
    assert space.texts[1][:2] == ("2", expected)
    assert inside.texts[1][1] == f"{of.self_similarity.raw.value:.3f}".replace("0.", ".")
    assert "Self-similarity: fewer than 20 word types." in inside.notes
    nmi = f"{of.clusters['upos'].nmi.value:.3f}".replace("0.", ".")
    assert clusters.texts[1][1].startswith(nmi)
    assert cka.texts[1] == ("2", f"{found.payload.cka[1][0]:.2f}", "1.00")
    assert not any("Too high" in note for note in cka.notes)


def test_a_table_of_clusters_says_why_they_have_no_interval():
    few = Geometry().compute(context(corpus(19, documents=0))).payload
    assert few.layers[0].clusters["upos"].ami.interval is None
    clusters = Geometry().tables(record(few))[2]
    assert "Part of speech: fewer than 20 sentences." in clusters.notes


def test_charts_have_a_curve_for_each_model_and_the_names_that_figures_go_by(found):
    other = Geometry().compute(context(seed=3)).payload
    charts = Geometry().charts({"a": record(found.payload), "b": record(other)})
    assert tuple(chart.name for chart in charts) == FIGURES == Geometry.figures
    by_name = {chart.name: chart for chart in charts}
    assert [p.value for p in by_name["isotropy"].models["b"]] == [
        x.anisotropy.value for x in other.layers
    ]
    assert by_name["context"].lines == [
        "self-similarity", "intra-sentence similarity", "maximum explainable variance",
    ]  # fmt: skip
    assert by_name["clusters"].lines == ["part of speech"]
    assert by_name["cka"].panels["a"].values == found.payload.cka
    assert all(chart.models for chart in charts if isinstance(chart, Curves))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_words_gives_what_it_can_and_says_why_not(n):
    words = [("w1",), ("w1", "w2"), ("w1", "w2", "w1")][n - 1]
    tiny = Sentence("s0", "en", words, ("X",) * n)
    its = context(Corpus("t", "1", "MIT", {"train": (), "dev": (), "test": (tiny,)}))
    payload = Geometry().compute(its).payload
    of = payload.layers[0]
    assert of.self_similarity.raw.value is None
    assert of.maximum_explainable_variance.adjusted.missing == "nothing to average"
    assert (of.intra_sentence_similarity.raw.value is None) == (n == 1)
    assert (of.anisotropy.value is None) == (n == 1)
    assert payload.missing == {"upos": "there are no two classes in test"}
    if n == 1:
        assert payload.cka == ((None, None), (None, None))
    else:
        assert payload.cka[0][0] == payload.cka[1][1] == 1
    tables = Geometry().tables(record(payload))
    notes = [note for table in tables for note in table.notes]
    assert any(note.startswith("Too high: ") for note in notes)
    assert "No clusters against part of speech: there are no two classes in test." in notes
    assert len(list(Geometry().numbers(record(payload)))) > 20
    assert Geometry().charts({"a": record(payload)})[3].missing == {"a": "there are no numbers"}


def test_a_corpus_without_annotation_has_no_clusters_and_zeros_and_windows_are_counted():
    of = corpus()
    bare = tuple(replace(s, upos=()) for s in of.splits["test"])
    its = context(
        replace(of, splits={**of.splits, "test": bare}),
        vectors=lambda s, layer: vectors_of(s, layer) * (s.id != "s3"),
    )
    its.long = lambda sentence: sentence.id in ("s1", "s2")
    payload = Geometry().compute(its).payload
    assert (payload.labels, payload.missing) == ({}, {})
    assert payload.in_several_windows == 2
    zeros = len(bare[3])
    assert [x.zero_vectors for x in payload.layers] == [zeros, zeros]
    space, *others = Geometry().tables(record(payload))
    assert len(others) == 2
    assert any("2 sentences are longer than the model's window" in x for x in space.notes)
    assert any(f"{zeros} at layer 0, {zeros} at layer 2" in x for x in space.notes)
