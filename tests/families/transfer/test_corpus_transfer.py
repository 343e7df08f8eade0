"""Probes of one corpus on another, on vectors of which the test knows where labels lie."""

import shutil
from itertools import islice, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from tiny_runs import files_of, run
from transformers import AutoTokenizer

import probes
from probes.cli.main import main
from probes.data.conllu_files import read_conllu
from probes.families.transfer.corpus_transfer import transfer_tables
from probes.records.parameters import parameters_path, read_parameters
from probes.statistics.bootstrap import resample

N_WORDS, SHIFT = 60, np.array([4.0, -3.0, 2.0, 0.0, 0.0, 0.0])
VECTORS = np.random.default_rng(0).normal(size=(N_WORDS, 6)).round(3)
TAGS = [("NOUN", "VERB", "ADJ")[row[:3].argmax()] for row in VECTORS]
SIZES = {"train": 80, "dev": 20, "test": 50}


def sentences():
    rng = np.random.default_rng(1)
    return {split: rng.integers(N_WORDS, size=(n, 7)) for split, n in SIZES.items()}


def write_corpus(folder, name, letter, tags):
    """The sentences in words of one language: ``a7`` is in language b ``b7``."""
    (folder / name).mkdir()
    for split, texts in sentences().items():
        lines = []
        for number, words in enumerate(texts):
            lines.append(f"# sent_id = {split}-{number}")
            for place, word in enumerate(words):
                relation = ("obj", "obl")[word % 2] if place else "root"
                tree = f"{place}\t{relation}\t_\t_"
                lines.append(f"{place + 1}\t{letter}{word}\t_\t{tags[word]}\t_\t_\t{tree}")
            lines.append("")
        path = folder / name / f"xx_{name.lower()}-ud-{split}.conllu"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / name)


@pytest.fixture(scope="module")
def languages_run(tmp_path_factory):
    """Languages whose vectors differ by a shift; the third has a label of its own."""
    folder = tmp_path_factory.mktemp("transfer")
    own_tags = [*TAGS[:-3], "X", "X", "X"]
    tags = {"A": TAGS, "B": TAGS, "C": own_tags}
    corpora = [write_corpus(folder, name, name.lower(), its) for name, its in tags.items()]
    lines = [f"{3 * N_WORDS} 6"]
    for letter, times in (("a", 0), ("b", 1), ("c", -1)):
        for number, vector in enumerate(VECTORS + times * SHIFT):
            lines.append(f"{letter}{number} " + " ".join(f"{x:.3f}" for x in vector))
    (folder / "both.vec").write_text("\n".join(lines) + "\n")
    settings = {"limit": None, "tasks": "pos", "probes": "linear", "transfer": True}
    results = run(f"vectors:{folder / 'both.vec'}", folder, corpus=corpora, **settings)
    by_corpus = {result.corpus.name: result for result in results.results}
    return SimpleNamespace(folder=folder, results=by_corpus)


def transferred(result, metric, train, layer=0, vectors=None):
    return result.evidence["corpus_transfer"].rows.at(metric, layer, train=train, vectors=vectors)


def said(folder, results, train, test, *, centred):
    """Labels of the test words, and what the probe of `train` says of them, by its parameters."""
    of = {
        name: {
            key.partition(".")[2]: array
            for key, array in read_parameters(folder / "cache", results[name].key).items()
        }
        for name in (train, test)
    }
    times = {"A": 0, "B": 1, "C": -1}[test]
    vectors = VECTORS[sentences()["test"].ravel()] + times * SHIFT
    probe, mean = of[train], of[test if centred else train]["mean"]
    outputs = (vectors - mean) * probe["scale"] @ probe["weight"].T + probe["bias"]
    classes = np.array(results[train].examples.classes)
    tags = np.array([*TAGS[:-3], "X", "X", "X"] if test == "C" else TAGS)
    return tags[sentences()["test"].ravel()], classes[outputs.argmax(1)]


def test_centring_repairs_a_shift(languages_run):
    results = languages_run.results
    own = results["A"].headline[0]
    assert own > 0.9
    for train, test in (("A", "B"), ("B", "A")):
        plain = transferred(results[test], "transfer_score", train)
        centred = transferred(results[test], "transfer_score", train, vectors="centred")
        # The sentences are the same, so that centred vectors are.
        assert centred.value == own == results["B"].headline[0]
        assert plain.value < own - 0.3
    assert transferred(results["A"], "transfer_score", "A").value == own


@pytest.mark.parametrize("vectors", [None, "centred"])
@pytest.mark.parametrize(("train", "test"), [("A", "B"), ("B", "C"), ("C", "A"), ("A", "C")])
def test_scores_and_intervals_are_those_of_the_parameters(languages_run, train, test, vectors):
    folder, results = languages_run.folder, languages_run.results
    gold, predicted = said(folder, results, train, test, centred=bool(vectors))
    score = transferred(results[test], "transfer_score", train, vectors=vectors)
    assert score.value == pytest.approx((gold == predicted).mean())
    _, own = said(folder, results, test, test, centred=False)
    difference = transferred(results[test], "transfer_difference", train, vectors=vectors)
    change = (gold == predicted).astype(float) - (gold == own)
    assert difference.value == pytest.approx(change.mean())
    # Sentences are of one length, so that means over sentences are means over words.
    draws = resample(SIZES["test"]).astype(float)
    means = draws @ change.reshape(-1, 7).mean(1) / SIZES["test"]
    ends = np.quantile(means, (0.025, 0.975))
    assert difference.interval == (pytest.approx(ends) if change.any() else None)
    if abs(difference.value) > 0.2:
        assert difference.p < 0.01


def test_labels_that_train_lacks_are_counted_and_count_as_errors(languages_run):
    results = languages_run.results
    words = sentences()["test"].ravel()
    n = int((words >= N_WORDS - 3).sum())
    record = results["C"].evidence["corpus_transfer"]
    for train in ("A", "B"):
        row = transferred(results["C"], "examples_without_label", train, layer=None)
        assert (row.value, row.n) == (n, len(words))
        score = transferred(results["C"], "transfer_score", train, vectors="centred")
        assert score.value <= 1 - n / len(words)
    assert transferred(results["A"], "examples_without_label", "C", layer=None).value == 0
    assert (
        f"pos: A has no training example labelled X; {n} of {len(words)} test examples are, and "
        "count as errors." in record.notes
    )


def test_centroids_are_means_of_training_vectors(languages_run):
    results = languages_run.results
    train = VECTORS[sentences()["train"].ravel()].mean(0)
    row = transferred(results["B"], "centroid_cosine", "C")
    assert row.value == pytest.approx(1 - cosine(train - SHIFT, train + SHIFT), abs=1e-5)


def test_a_table_has_every_training_corpus_by_every_test_corpus(languages_run):
    results = languages_run.results
    (table,) = transfer_tables(results.values())
    assert table.heads == ("trained on", "A, layer 0", "B, layer 0", "C, layer 0")
    for row, train in zip(table.texts, "ABC", strict=True):
        scores = [transferred(results[test], "transfer_score", train).value for test in "ABC"]
        assert row == (train, *(f"{100 * score:.1f}" for score in scores))
    best = [[cell.best for cell in row.cells] for row in table.rows]
    assert best == [[False, *(train == test for test in "ABC")] for train in "ABC"]


@pytest.mark.slow
def test_a_corpus_transfers_to_itself_without_loss(tiny_bert, tmp_path):
    """Words and pairs, classes and numbers, linear probes and MLPs."""
    corpora = [write_corpus(tmp_path, "A", "a", TAGS)]
    corpora.append(shutil.copytree(corpora[0], tmp_path / "same"))
    settings = {"tasks": "pos,depth,deprel", "transfer": True, "layers": "2"}
    results = run(tiny_bert, tmp_path, limit=25, corpus=list(map(str, corpora)), **settings)
    assert len(results.results) == 12
    for result in results.results:
        (other,) = {"A", "same"} - {result.corpus.name}
        exactly = {"abs": 1e-6} if result.task.kind == "regression" else {"abs": 0, "rel": 0}
        for layer in result.layers:
            for vectors in (None, "centred"):
                score, difference = (
                    transferred(result, metric, other, layer, vectors)
                    for metric in ("transfer_score", "transfer_difference")
                )
                assert score.value == pytest.approx(result.headline[layer], **exactly)
                assert difference.value == pytest.approx(0, abs=1e-6)
            cos = transferred(result, "centroid_cosine", other, layer)
            assert cos.value == pytest.approx(1, abs=1e-6)


def test_common_pieces_are_those_that_the_training_corpus_has(tiny_bert, tmp_path):
    """Languages share the pieces after the first letter of a word; letters stand for digits."""
    letters = str.maketrans("0123456789", "adehinorst")
    corpora = [
        write_corpus(tmp_path, name, letter, TAGS) for name, letter in (("A", "h"), ("B", "s"))
    ]
    for path in tmp_path.rglob("*.conllu"):
        lines = [line.split("\t") for line in path.read_text().split("\n")]
        for line in lines:
            line[1:2] = [x.translate(letters) for x in line[1:2]]
        path.write_text("\n".join(map("\t".join, lines)))
    settings = {"tasks": "pos", "probes": "linear", "layers": "2", "limit": 40, "transfer": True}
    results = run(tiny_bert, tmp_path, corpus=corpora, **settings)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    ids = {}
    for corpus, split in product("AB", ("train", "test")):
        path = tmp_path / corpus / f"xx_{corpus.lower()}-ud-{split}.conllu"
        words = [s.words for s in islice(read_conllu(path, "xx"), 40)]
        ids[corpus, split] = [
            i for x in words for i in tokenizer([*x], is_split_into_words=True)["input_ids"][1:-1]
        ]
    for result in results.results:
        test = ids[result.corpus.name, "test"]
        for train in "AB":
            row = transferred(result, "common_pieces", train, layer=None)
            known = {*ids[train, "train"]}
            share = pytest.approx(np.mean([i in known for i in test]))
            assert (row.value, row.n) == (share, len(test))
            own = train == result.corpus.name
            assert (row.value > 0.9) == own
            assert row.value > 0.3


@pytest.mark.slow
def test_transfer_is_added_to_scores_and_found_again(tiny_bert, tmp_path, capsys):
    corpora = [write_corpus(tmp_path, name, name.lower(), TAGS) for name in "AB"]
    settings = {"tasks": "pos", "probes": "linear", "layers": "2", "limit": 25}
    for corpus in corpora:
        run(tiny_bert, tmp_path, corpus=corpus, **settings)
    scores = files_of(tmp_path)
    plan = run(tiny_bert, tmp_path, corpus=corpora, transfer=True, dry_run=True, **settings)
    assert not plan.results
    assert capsys.readouterr().out.count("corpus_transfer") == 2
    results = run(tiny_bert, tmp_path, corpus=corpora, transfer=True, **settings)
    after = files_of(tmp_path)
    assert {path: after[path] for path in scores} == scores
    assert len(after) == len(scores) + 2 == 4
    run(tiny_bert, tmp_path, corpus=corpora, transfer=True, **settings)
    assert files_of(tmp_path) == after
    # A third corpus is another question; what its probes need may have been pruned.
    corpora.append(write_corpus(tmp_path, "C", "c", TAGS))
    parameters_path(tmp_path / "cache", results.results[0].key).unlink()
    with pytest.raises(probes.UserError, match="run again with --overwrite always"):
        run(tiny_bert, tmp_path, corpus=corpora, transfer=True, **settings)


def test_the_record_names_the_scores_whose_probes_it_applies(languages_run):
    results = languages_run.results
    trained = {name: results[name].key for name in "AC"}
    assert results["B"].evidence["corpus_transfer"].settings == {"trained": trained}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("sample", "--transfer: give two corpora or more after --corpus."),
        ("sample sample", "--corpus sample sample: several are called sample; rename them."),
        ("sample ewtt", "Unknown corpus 'ewtt'. Did you mean 'ewt'?"),
        (
            "sample ewt --evidence corpus_transfer",
            "--evidence corpus_transfer: use --transfer, with several corpora.",
        ),
        (
            "sample ewt --measurements structure",
            "--measurements structure: --transfer needs scores; add scores to these.",
        ),
        # Before any is measured.
        ("sample {B} --tasks pos,srl", "--tasks srl: B has no frames; leave it out"),
    ],
)
def test_what_cannot_be_transferred_is_refused(arguments, says, tiny_bert, tmp_path, capsys):
    arguments = arguments.format(B=write_corpus(tmp_path, "B", "b", TAGS)).split()
    places = ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "c")]
    command = ["--model", str(tiny_bert), "--transfer", "--limit", "30", "--quick", *places]
    assert main([*command, "--tasks", "pos", "--corpus", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.json"))
