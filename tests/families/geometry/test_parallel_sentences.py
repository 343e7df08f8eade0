"""Parallel sentences: planted languages, and a run against transformers, scipy and scikit-learn."""

from collections import Counter
from itertools import compress

import numpy as np
import pytest
from measuring import command_line, measure
from plain_passes import hand_vectors
from scipy.spatial.distance import cdist
from scipy.stats import f_oneway
from sklearn.neighbors import KNeighborsClassifier
from transformers import AutoTokenizer

import probes
from probes.cli.main import main
from probes.families.geometry.parallel_sentences import (
    HitKey,
    language_share,
    layer_hits,
    retrieval_hits,
)
from probes.statistics.bootstrap import resample

N, SIZE = 60, 12
FITTED = np.arange(N) % 2 == 0


def hits_of(one, other):
    """Means of the values of `layer_hits` by metric, kind of vectors and direction."""
    return {
        (key.metric, key.vectors, key.direction): values.mean()
        for key, values in layer_hits(3, "xx", (one, other), FITTED)
    }


def test_translations_that_differ_by_a_shift_are_found_after_centring():
    content = np.random.default_rng(0).normal(size=(N, SIZE))
    shifts = 50 * np.eye(SIZE)[:2]
    found = hits_of(content + shifts[0], content + shifts[1])
    assert found.pop(("language_accuracy", "as read", None)) == 1
    # Each known sentence is there in both languages, so that the first of equals is near.
    assert found.pop(("language_accuracy", "centred", None)) == 0.5
    for direction in ("to", "from"):
        assert found.pop(("retrieval_accuracy", "as read", direction)) < 0.2
        assert found.pop(("retrieval_accuracy", "centred", direction)) == 1
        assert found.pop(("retrieval_accuracy", "shifted", direction)) == 1
    assert not found
    assert language_share((content + shifts[0], content + shifts[1]), FITTED) > 0.98
    assert language_share((content, content), FITTED) < 0


def test_numbers_of_a_layer_are_those_of_scikit_learn_and_scipy():
    rng = np.random.default_rng(1)
    one = rng.normal(size=(N, SIZE))
    other = one + 1.5 * rng.normal(size=(N, SIZE)) + 1
    found = hits_of(one, other)
    means = one[FITTED].mean(0), other[FITTED].mean(0)
    tested = one[~FITTED], other[~FITTED]
    centred = one - means[0], other - means[1]
    for vectors, pair in (("as read", (one, other)), ("centred", centred)):
        known = KNeighborsClassifier(1, metric="cosine")
        known.fit(np.concatenate([x[FITTED] for x in pair]), np.repeat([0, 1], N // 2))
        told = known.predict(np.concatenate([x[~FITTED] for x in pair]))
        right = (told == np.repeat([0, 1], N // 2)).mean()
        assert found["language_accuracy", vectors, None] == pytest.approx(right)
        nearest = cdist(pair[0][~FITTED], pair[1][~FITTED], "cosine")
        for direction, distances in (("to", nearest), ("from", nearest.T)):
            right = (distances.argmin(1) == np.arange(N // 2)).mean()
            assert found["retrieval_accuracy", vectors, direction] == pytest.approx(right)
    # Pires et al. 2019: the vector plus the difference of means, by Euclidean distance.
    for direction, start, end in (("to", 0, 1), ("from", 1, 0)):
        distances = cdist(tested[start] + means[end] - means[start], tested[end])
        right = (distances.argmin(1) == np.arange(N // 2)).mean()
        assert found["retrieval_accuracy", "shifted", direction] == pytest.approx(right)
    assert 0.1 < right < 1


def test_the_share_between_languages_is_that_of_analysis_of_variance():
    """Of one dimension ε² follows from F: 1 − (n − 1) / (n − 2 + F)."""
    one, other = np.random.default_rng(2).normal(size=(2, N, 1))
    other += 1
    f = f_oneway(one[~FITTED, 0], other[~FITTED, 0]).statistic
    assert language_share((one, other), FITTED) == pytest.approx(1 - (N - 1) / (N - 2 + f))
    assert language_share((0 * one, 0 * one), FITTED) is None


def test_of_equally_near_sentences_each_counts_in_part():
    nearness = np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    (_, to), (_, back) = retrieval_hits(nearness, HitKey("retrieval_accuracy", 0, "xx"))
    assert to.tolist() == pytest.approx([1 / 2, 0, 1 / 3])
    assert back.tolist() == pytest.approx([0, 1 / 2, 0])


TEXT = "the old dog sees a cat near house she gave him some books and he read"
WORDS = TEXT.split()
N_PAIRS = 90


def written(path, sentences):
    lines = []
    for number, (name, words) in enumerate(sentences.items()):
        lines += [f"# newdoc id = {name}"] if number % 2 == 0 else []
        lines += [f"# sent_id = {name}"] if name else []
        lines += [
            f"{i}\t{word}\t_\tX\t_\t_\t{i - 1}\t{'root' if i == 1 else 'dep'}\t_\t_"
            for i, word in enumerate(words, start=1)
        ]
        lines.append("")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


def translated(words):
    """Every second word of the list by its neighbour, in reverse order."""
    return [WORDS[place - place % 2] for place in (WORDS.index(x) for x in reversed(words))]


@pytest.fixture(scope="module")
def parallel_run(tmp_path_factory, tiny_bert):
    """A run with its sentences by language; each file has sentences that others lack."""
    folder, rng = tmp_path_factory.mktemp("parallel"), np.random.default_rng(0)
    pairs = {f"n{i}": rng.choice(WORDS, int(rng.integers(2, 9))).tolist() for i in range(N_PAIRS)}
    theirs = {name: translated(words) for name, words in reversed(pairs.items())}
    mixed = {name: words[:1] + translated(words[1:]) for name, words in pairs.items()}
    own = written(folder / "aa_own-ud-test.conllu", {**pairs, "alone": ["dog"], "too": ["cat"]})
    files = [
        written(folder / "bb_x-ud-test.conllu", {"w1": ["cat"], "w2": ["dog"], **theirs}),
        written(folder / "cc_x-ud-test.conllu", mixed),
    ]
    settings = {"split_by": "document"}
    settings["options"] = {"parallel_sentences": {"files": ",".join(files)}}
    run = measure("parallel_sentences", tiny_bert, own, folder, **settings)
    languages = {"own": pairs, "bb_x": theirs, "cc_x": mixed}
    run.languages = {name: [part[x] for x in pairs] for name, part in languages.items()}
    return run


def ngrams(words):
    """Counts of 2 to 4 letters of each word with spaces around it, as of ``char_wb``."""
    return Counter(
        f" {word} "[start : start + n]
        for word in words
        for n in (2, 3, 4)
        for start in range(len(word) + 3 - n)
    )


def cosines_of_letters(one, other):
    """TF-IDF by hand: (1 + ln((1 + n) / (1 + df))) · tf. Shape (n, n)."""
    counts = [ngrams(words) for words in (*one, *other)]
    df = Counter(gram for count in counts for gram in count)
    weights = {gram: 1 + np.log((1 + len(counts)) / (1 + df[gram])) for gram in df}
    rows = np.array([[count[gram] * weights[gram] for gram in df] for count in counts])
    return 1 - cdist(rows[: len(one)], rows[len(one) :], "cosine")


@pytest.mark.parametrize("language", ["bb_x", "cc_x"])
def test_a_run_has_the_numbers_of_plain_transformers(language, parallel_run, tiny_bert):
    record, languages = parallel_run.record, parallel_run.languages
    fitted = np.arange(N_PAIRS) // 2 % 2 == 0
    both = languages["own"], languages[language]
    states = [np.stack([x.mean(1) for x in hand_vectors(tiny_bert, part)], 1) for part in both]
    one_half = 1.01 / np.count_nonzero(~fitted)
    document = np.arange(N_PAIRS)[~fitted] // 4

    def same(row, values):
        # Float32 may decide one sentence otherwise.
        assert row.value == pytest.approx(np.mean(values), abs=one_half)
        draws = resample(document.max() + 1).astype(float)
        sums = np.bincount(document, values), np.bincount(document)
        ends = np.quantile(draws @ sums[0] / (draws @ sums[1]), [0.025, 0.975])
        assert row.interval == pytest.approx(ends, abs=2 * one_half)

    for layer in range(3):
        one, other = (x[layer] for x in states)
        axes = {"language": language, "vectors": "as read"}
        share = record.rows.at("language_share", layer, split="all", **axes)
        rows = [x[~fitted] for x in (one, other)]
        within = sum(((x - x.mean(0)) ** 2).sum() for x in rows) / (2 * len(rows[0]) - 2)
        total = np.concatenate(rows).var(0, ddof=1).sum()
        assert share.value == pytest.approx(1 - within / total, abs=1e-4)
        centred = [x[~fitted] - x[fitted].mean(0) for x in (one, other)]
        for vectors, pair, metric in (
            ("as read", rows, "cosine"),
            ("centred", centred, "cosine"),
            ("shifted", centred, "euclidean"),
        ):
            distances = cdist(*pair, metric)
            for direction, values in (("to", distances), ("from", distances.T)):
                nearest = np.isclose(values, values.min(1, keepdims=True), atol=1e-6)
                axes = {"language": language, "vectors": vectors, "direction": direction}
                row = record.rows.at("retrieval_accuracy", layer, split="all", **axes)
                same(row, nearest.diagonal() / nearest.sum(1))
    letters = cosines_of_letters(*([*compress(part, ~fitted)] for part in both))
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokens = [[tokenizer(x, is_split_into_words=True)["input_ids"][1:-1] for x in p] for p in both]
    both_ways = ("to", letters, tokens), ("from", letters.T, tokens[::-1])
    for direction, values, (asked, known) in both_ways:
        nearest = np.isclose(values, values.max(1, keepdims=True))
        axes = {"language": language, "direction": direction}
        row = record.rows.at("retrieval_accuracy", split="all", baseline="letters", **axes)
        same(row, nearest.diagonal() / nearest.sum(1))
        pieces = {piece for x in compress(known, fitted) for piece in x}
        shares = [np.mean([i in pieces for i in x]) for x in compress(asked, ~fitted)]
        same(record.rows.at("common_pieces", split="all", **axes), shares)


def test_what_has_no_translation_is_counted(parallel_run):
    assert parallel_run.record.notes[0].startswith("90 of 92 sentences are in all files.")
    assert parallel_run.record.facts["candidates"] == 44


OTHER = {"n0": ["cat"]}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "--measurements parallel_sentences: it needs --parallel-sentences-files."),
        ({"nowhere": None}, "-files nowhere: nowhere is no file; give CoNLL-U files"),
        (
            {"bb_x-ud-test.conllu": OTHER},
            "all of them translate 1 sentence of aa_own; give files with its sent_id",
        ),
        (
            {"bb_x-ud-test.conllu": OTHER, "bb_x-ud-dev.conllu": OTHER},
            "need different names before -ud-; rename one.",
        ),
        (
            {"aa_own-ud-test.conllu": OTHER},
            "files, and the corpus aa_own, need different names before -ud-",
        ),
        ({"bb_x-ud-test.conllu": {"": ["cat"]}}, "bb_x-ud-test.conllu: its sentences have no sent_id."),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used_are_refused(files, says, tiny_bert, tmp_path, capsys):
    own = written(tmp_path / "aa_own.conllu", {f"n{i}": ["dog"] for i in range(20)})
    paths = [written(tmp_path / x, its) if its else x for x, its in files.items()]
    flags = ["--parallel-sentences-files", ",".join(paths)] if paths else []
    line = command_line("parallel_sentences", tiny_bert, own, tmp_path, "--split-by", "sentence")
    assert main([*line, *flags]) == 2
    assert says in capsys.readouterr().err


def test_given_vectors_are_refused(tmp_path):
    own = written(tmp_path / "aa_own-ud-test.conllu", {f"n{i}": ["dog"] for i in range(20)})
    (tmp_path / "static.vec").write_text("1 2\ndog 1.0 2.0\n")
    model, options = f"vectors:{tmp_path / 'static.vec'}", {"parallel_sentences": {"files": own}}
    settings = {"split_by": "sentence", "options": options}
    with pytest.raises(probes.UserError, match="given vectors have no sentence vectors; leave it"):
        measure("parallel_sentences", model, own, tmp_path, **settings)
