"""Measurements of plug-ins: a corpus's vectors, and evidence behind scores; keys, flags, failures."""

import csv

import numpy as np
import pytest
from plain_passes import hand_vectors
from plugged_in import measurement_file
from tiny_runs import files_of

from probes.__main__ import main as sub_command
from probes.cli.main import main
from probes.common.errors import UserError
from probes.frames.frame import load
from probes.frames.joined_results import find_results
from probes.measurements.measurement import measurements
from probes.records.record_files import read_record
from probes.run.settings import validate

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")

NORMS = measurement_file("word_norms", "corpus")
AGREEMENT = measurement_file("seed_agreement", "probes")


@pytest.fixture
def command(tiny_bert, tmp_path):
    """Runs a command line of a few sentences; its exit status."""

    def command(*more):
        line = "--tasks pos --probes linear --limit 20 --evidence none --twins 0 --device cpu"
        places = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
        return main(["--model", str(tiny_bert), *line.split(), *places, *map(str, more)])

    return command


def by_layer(record):
    """The values of its rows."""
    return dict(zip(record.rows.layer, record.rows.value, strict=True))


def numbers(folder):
    with (folder / "results" / "measurements.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def short(tmp_path):
    """A corpus of three sentences, each of which fits in the model's window."""
    (tmp_path / "short").mkdir()
    for split in ("train", "dev", "test"):
        lines = []
        for words in SENTENCES:
            for i, word in enumerate(words):
                lines.append(f"{i + 1}\t{word}\t_\tX\t_\t_\t{i}\tdep\t_\t_")
            lines.append("")
        (tmp_path / "short" / f"{split}.conllu").write_text("\n".join(lines) + "\n")
    return tmp_path / "short"


SENTENCES = [
    ["the", "old", "dog", "sees", "a", "cat", "near", "the", "house"],
    ["she", "gave", "him", "some", "books", "and", "he", "read", "them"],
    ["birds", "sing", "when", "the", "sun", "was", "upon", "them"],
]


def by_hand(model, order=2.0):
    """The mean norm of a word's vector by layer."""
    words = np.concatenate(hand_vectors(model, SENTENCES), axis=1)
    return np.linalg.norm(words, ord=order, axis=2).mean(1)


def test_a_measurement_of_a_corpus_finds_what_is_computed_by_hand(
    write, command, short, tiny_bert, tmp_path, capsys, monkeypatch
):
    path = write(NORMS, "word_norms.py")
    monkeypatch.setenv("COLUMNS", "100")
    assert command("--include", path, "--measurements", "word_norms", "--corpus", short) == 0
    said = capsys.readouterr()
    (record_path,) = (tmp_path / "results").rglob("word_norms-*.json")
    record = read_record(record_path)
    expected = by_hand(tiny_bert)
    assert by_layer(record) == {n: pytest.approx(expected[n], rel=2e-3) for n in range(3)}
    assert set(record.rows.n) == {sum(map(len, SENTENCES))}
    assert record.extent == {0: 1, 1: 1, 2: 1}
    assert (record.task, record.probe, record.view) == (None, None, "plain")
    assert record.settings == {"order": 2.0}
    (plug_in,) = record.plug_ins
    assert (plug_in.kind, plug_in.name, plug_in.source) == ("measurement", "word_norms", str(path))
    rows = numbers(tmp_path)
    assert [(row["metric"], row["layer"]) for row in rows] == [("mean_norm", n) for n in "012"]
    assert [float(row["value"]) for row in rows] == pytest.approx(expected, rel=2e-3)
    assert {row["key"] for row in rows} == {f"sha256:{record.key[:8]}"}
    assert "tiny-bert · short · word norms" in " ".join(said.out.split())
    assert f"{expected[2]:.1f}" in said.out
    beside = record_path.with_name("word_norms.csv")
    assert f"next    see {beside} for the numbers" in said.err
    with beside.open() as file:
        own = list(csv.DictReader(file))
    for name in ("layer", "metric", "value"):
        assert [row[name] for row in own] == [row[name] for row in rows]
    assert not list((tmp_path / "results").rglob("*-scores-*"))


def test_an_option_is_a_flag_and_part_of_the_key(
    write, command, short, tiny_bert, tmp_path, capsys, monkeypatch
):
    line = ["--include", write(NORMS, "word_norms.py"), "--measurements", "word_norms"]
    line += ["--corpus", short]
    assert command(*line) == 0
    assert command(*line, "--word-norms-order", "1") == 0
    found = {r.settings["order"]: r for r in load(tmp_path / "results").records().values()}
    assert found.keys() == {2.0, 1.0}
    assert found[1.0].inputs == found[2.0].inputs
    assert found[1.0].key != found[2.0].key
    expected = by_hand(tiny_bert, order=1)
    assert by_layer(found[1.0]) == {n: pytest.approx(expected[n], rel=2e-3) for n in range(3)}
    capsys.readouterr()
    assert command(*line, "--word-norms-order", "none") == 2
    assert capsys.readouterr().err == "error: --word-norms-order none: not a number.\n"
    assert command(*line, "--word-norms-ordr", "1") == 2
    assert "Did you mean '--word-norms-order'?" in capsys.readouterr().err
    config = {"include": line[1], "measurements": "word_norms", "options": {"wordnorms": {}}}
    said = r"Unknown measurement 'wordnorms'\. Did you mean 'word_norms'"
    with pytest.raises(UserError, match=said):
        validate(config)
    with pytest.raises(SystemExit):
        main(["--help-all", "--include", str(line[1])])
    assert "--word-norms-order VALUE" in " ".join(capsys.readouterr().out.split())


def test_evidence_of_a_plug_in_is_what_predictions_of_both_seeds_say(
    write, run_with, tmp_path, monkeypatch, capsys
):
    path = write(AGREEMENT, "seed_agreement.py")
    settings = {"tasks": ("pos",), "probes": ("linear", "mlp")}
    found = run_with(path, evidence="seed_agreement", **settings)
    linear, mlp = (by_layer(result.evidence["seed_agreement"]) for result in found.results)
    # A convex probe does not depend on its seed.
    assert linear == {0: 1.0, 1: 1.0, 2: 1.0}
    run_with(path, seeds=2, output=tmp_path / "both", **settings)
    (stored,) = (tmp_path / "both").rglob("pos-mlp-scores-*.npz")
    with np.load(stored) as arrays:
        first, second = arrays["predicted"].swapaxes(0, 1)
    expected = (first == second).mean(1)
    assert [mlp[layer] for layer in range(3)] == pytest.approx(expected, abs=0.01)
    assert expected.max() < 1
    rows = [row for row in numbers(tmp_path) if row["probe"] == "mlp"]
    assert [float(row["value"]) for row in rows] == pytest.approx([mlp[n] for n in range(3)])
    (text,) = [p.read_text() for p in (tmp_path / "results").rglob("layers.md")]
    assert "## linear probe, seed agreement" in text
    capsys.readouterr()
    show = ["show", str(tmp_path / "results"), "--by", "seed_agreement"]
    assert sub_command(show) == 0
    assert f"{mlp[2]:.3f}".lstrip("0") in capsys.readouterr().out


WORDS_BESIDE = """
import numpy as np
from probes import Row, measurement

@measurement("words_beside", after="scores", needs=NEEDS)
def words_beside(context):
    "Norms of words, beside scores."
    sentences = context.corpus.splits["test"]
    for layer in context.layers:
        norms = np.linalg.norm(context.words("test", layer), axis=1)
        yield Row("mean_norm", norms.mean(), layer, n=sum(map(len, sentences)))
    yield Row("size", context.model.hidden_size, n=len(context.examples.splits["test"].examples))
"""


def test_evidence_has_the_corpus_and_the_model_too(write, command, tmp_path, capsys):
    beside = write(WORDS_BESIDE.replace("NEEDS", '("upos",)'), "beside.py")
    named = "--include", f"{beside},{write(NORMS, 'word_norms.py')}", "--evidence", "words_beside"
    assert command(*named, "--measurements", "probes,word_norms") == 0
    records = load(tmp_path / "results").records().values()
    (norms,) = (record for record in records if record.measurement == "word_norms")
    (found,) = (record for record in records if record.measurement == "words_beside")
    *own, size = found.rows
    for name in ("layer", "value", "n"):
        assert [getattr(row, name) for row in own] == [getattr(row, name) for row in norms.rows]
    assert (size.value, size.n) == (found.model.hidden_size, own[0].n)
    capsys.readouterr()
    assert command(*named, "--tasks", "agreement", "--limit", "200") == 1
    assert (
        "failed  agreement · linear · words_beside: the measurement 'words_beside' raised "
        "TypeError: sentences were read in the 'masked' view, not in 'plain'"
    ) in capsys.readouterr().err


def test_evidence_that_needs_what_the_corpus_lacks_is_left_out(write, command, tmp_path, capsys):
    path = write(WORDS_BESIDE.replace("NEEDS", '("tones",)'), "beside.py")
    assert command("--include", path, "--evidence", "words_beside") == 0
    assert "left out pos · linear · words_beside: it has no tones" in capsys.readouterr().err
    (result,) = find_results(tmp_path / "results").values()
    assert result.evidence == {}


def test_a_failure_costs_only_its_own_unit_and_names_file_and_line(
    write, command, tmp_path, capsys
):
    good, bad = 'vectors = context.words("test", layer)', "vectors = {}[layer]"
    assert good in NORMS
    text = NORMS.replace(good, bad)
    line = next(n for n, x in enumerate(text.splitlines(), 1) if bad in x)
    path = write(text, "word_norms.py")
    other = write(NORMS.replace("word_norms", "good_norms"), "good_norms.py")
    names = "probes,word_norms,good_norms"
    assert command("--include", f"{path},{other}", "--measurements", names) == 1
    said = capsys.readouterr().err
    why = f"the measurement 'word_norms' raised KeyError: 0. Fix {path}, line {line}."
    assert f"failed  word_norms: {why}\n" in said
    assert f"missing tiny-bert · word_norms: {why}\n" in said
    kept = sorted(file.name.rpartition("-")[0] for file in files_of(tmp_path))
    assert kept == ["good_norms", "pos-linear-scores"]
    # Mended, it is measured; the rest is there.
    before = files_of(tmp_path)
    write(NORMS, "word_norms.py")
    assert command("--include", f"{path},{other}", "--measurements", names) == 0
    assert before.items() < files_of(tmp_path).items()


EVIDENCE_FAILURES = {
    "compute": ("reported = context.predicted(context.layers)", "reported = [][0]"),
    "missing": ('return "predictions are numbers"', "return [][0]"),
}


@pytest.mark.parametrize("where", EVIDENCE_FAILURES)
def test_evidence_that_fails_leaves_scores_and_other_evidence(
    where, write, run_with, tmp_path, capsys
):
    good, bad = EVIDENCE_FAILURES[where]
    assert good in AGREEMENT
    text = AGREEMENT.replace(good, bad)
    if where == "missing":
        text = text.replace(' if task.kind == "regression" else ""', "")
    path = write(text, "seed_agreement.py")
    line = next(n for n, x in enumerate(text.splitlines(), 1) if "[][0]" in x or "([][0]" in x)
    results = run_with(path, tasks=("pos",), evidence=("seed_agreement", "selectivity"))
    (result,) = results.results
    assert result.evidence.keys() == {"selectivity"}
    assert results.failed == {
        "tiny-bert · pos · linear · seed_agreement": "the measurement 'seed_agreement' raised "
        f"IndexError: list index out of range. Fix {path}, line {line}."
    }
    said = capsys.readouterr().err
    assert said.count("failed  pos · linear · seed_agreement: ") == 1
    assert said.count("missing tiny-bert · pos · linear · seed_agreement: ") == 1


def test_a_corpus_that_cannot_be_measured_is_refused_before_anything_is_read(
    write, command, tmp_path, capsys
):
    text = NORMS.replace("needs=()", 'needs=("gaze",)')
    path = write(text, "word_norms.py")
    assert command("--include", path, "--measurements", "word_norms") == 2
    assert capsys.readouterr().err == (
        "error: --measurements word_norms: not of the corpus sample, since it has no gaze; leave "
        "it out, or choose another --corpus.\n"
    )
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('    "word_norms"', '    "word-norms"'), "the name becomes part of file names"),
        (('    "word_norms"', '    "scores"'), "The measurement 'scores' is defined twice, in the suite"),
        (('    "word_norms"', '    "probes"'), "--measurements or --evidence uses this word"),
        (('    "word_norms",\n', ""), "TypeError: measurement() missing 1 required positional argument"),
        (('    """Mean norm of word vectors, by layer."""\n', ""), "its docstring has no first line"),
        (("options=Options", "options=dict"), "options has to be a subclass of Frozen"),
        (("default=2.0, ", ""), "the option 'order' has no default"),
        (("    version=1", "    versoin=1"), "no attribute 'versoin'. Did you mean 'version'?"),
        (("    version=1", "    of=1"), 'of is 1; it can be "task", "model" or "pair".'),
        (("    version=1", '    of="task"'), 'of a task it has to be after="scores".'),
        (("    version=1", '    after="pos"'), "after is 'pos', which nothing of a task can be after"),
    ],
)  # fmt: skip
def test_a_measurement_that_cannot_be_registered_is_one_line(change, message, write, capsys):
    assert change[0] in NORMS
    path = write(NORMS.replace(*change), "word_norms.py")
    before = list(measurements)
    assert main(["--list-measurements", "--include", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {path}, line ")
    assert message in line
    assert list(measurements) == before


def test_an_option_that_clashes_with_a_flag_is_refused(write, capsys):
    path = write(NORMS.replace("word_norms", "batch").replace("order", "tokens"), "batch.py")
    assert main(["--help", "--include", str(path)]) == 2
    assert capsys.readouterr().err == (
        "error: Measurement 'batch': its option 'tokens' would be the flag --batch-tokens, which "
        "exists already; rename the option.\n"
    )
