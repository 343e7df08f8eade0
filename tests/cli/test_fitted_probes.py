"""Probes of stored scores: as estimators and as files, against the predictions beside the record."""

import json
import re
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from board_by_hand import put
from guides import Guide
from safetensors import safe_open
from tiny_runs import run
from transformers import AutoModel, AutoTokenizer

import probes
from probes.__main__ import main
from probes.cli.main import main as run_main
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.extraction.reading.encoding import word_vectors
from probes.extraction.reading.vectors import StoredVectors
from probes.records.parameters import CACHE
from probes.records.probe_spec import PROBES
from probes.records.record_files import read_arrays
from probes.tasks.builtin import tasks
from probes.training.families import FOR_CLASSES

TASKS = ("pos", "depth", "srl", "roles", "agreement")
FAMILIES = ("linear", "mlp", *FOR_CLASSES)
LAYER = 2
PAGE = Guide("vectors.md")


def of_the_manual(start):
    """The block of code that begins like this."""
    (found,) = (block for block in PAGE.blocks("python") if block.startswith(start))
    return found


def features(data, split):
    """The mean vectors of the spans of each example, side by side."""
    layer = data.vectors.layer(LAYER)

    def mean(a, b):
        # A span of one word is what is stored; another one's mean is computed in float32.
        return layer[np.arange(a, b)].astype(np.float32).mean(0)

    spans = data.examples.rows(split, data.view, data.vectors)
    return np.concatenate([[mean(a, b) for a, b in span] for span in spans], axis=1)


PLAIN = pytest.mark.parametrize("made", [None], indirect=True, scope="module")
"""Without a projection, which an estimator does not have."""


@pytest.fixture(scope="module", params=[None, 5])
def made(request, tiny_bert, tmp_path_factory):
    """A run, and by task the examples and vectors that its probes were fitted to."""
    folder, data = tmp_path_factory.mktemp("run"), {}
    with pytest.MonkeyPatch.context() as patch:
        short = PROBES["mlp"].model_copy(update={"min_steps": 24, "hidden": 16})
        patch.setitem(PROBES, "mlp", short)
        settings = {"tasks": TASKS, "seeds": 2, "project": request.param, "probes": FAMILIES}
        results = run(tiny_bert, folder, **settings)
        (place,) = (folder / "results").glob("*/sample")
        stored = {}
        for result in results.results:
            (path,) = place.glob(f"*-scores-{result.key[:8]}.json")
            data[result.task.name] = read_again(result, folder / "cache")
            stored[result.task.name, result.probe.family] = result, read_arrays(path)
        yield SimpleNamespace(place=place, cache=folder / "cache", data=data, stored=stored)


def read_again(result, cache):
    """The examples of a result, and the stored vectors of their words."""
    corpus = find_corpus("sample", limit=60).load()
    examples = collect_examples(tasks.get(result.task.name), corpus, "masked")
    view = examples.view_of(corpus)
    reading = word_vectors(cache, result.model, result.dtype, view, [LAYER], result.pooling)
    vectors = StoredVectors(cache, reading.key, view)
    return SimpleNamespace(examples=examples, view=view, vectors=vectors)


def as_stored(predicted, result):
    """Predictions of an estimator in the form of those beside a record."""
    if result.task.kind == "regression":
        return predicted
    if result.task.kind == "multi-label":
        return np.packbits(predicted.astype(bool), axis=1)
    return np.array([result.examples.classes.index(label) for label in predicted])


@pytest.mark.parametrize(
    ("task", "family"),
    [
        *((task, family) for task in TASKS for family in ("linear", "mlp")),
        *((task, family) for task in ("pos", "agreement") for family in FOR_CLASSES),
    ],
)
def test_what_is_read_and_what_is_exported_predict_what_is_stored(
    made, tmp_path, monkeypatch, capsys, task, family
):
    result, arrays = made.stored[task, family]
    x = features(made.data[task], "test")
    # The run has noted its cache, which is not the default.
    probe = probes.read_probe(made.place, task, LAYER, family)
    predicted = as_stored(probe.predict(x), result)
    np.testing.assert_allclose(predicted, arrays["predicted"][LAYER, 0], atol=1e-3)
    assert probe.n_features_in_ == x.shape[1]

    monkeypatch.chdir(tmp_path)
    line = f"--task {task} --layer {LAYER} --probe {family} -o probe.safetensors --cache-dir"
    assert main(["export-probe", str(made.place), *line.split(), str(made.cache)]) == 0
    assert capsys.readouterr().out == "probe.safetensors\n"
    names = {"x": x}
    exec(of_the_manual("import json"), names)
    binary = len(result.examples.classes) == 2 and result.task.kind == "classification"
    if result.task.kind != "regression":
        outputs = names["outputs"][:, 0] if binary else names["outputs"]
        np.testing.assert_allclose(outputs, probe.decision_function(x), atol=1e-9)
    assert np.array_equal(names["predicted"], probe.predict(x))
    assert (task == "agreement") == binary
    if binary and family != "mlp":
        second = x @ names["p"]["direction"] > float(names["card"]["threshold"])
        classes = json.loads(names["card"]["classes"])
        assert np.array_equal(np.array(classes)[second.astype(int)], names["predicted"])
    if family != "mlp":
        outputs = 1 if binary else max(1, len(result.examples.classes))
        assert names["p"]["weight"].shape == probe.coef_.shape == (outputs, x.shape[1])


def test_the_noted_cache_is_not_passed_on(made, tmp_path):
    assert (made.place / CACHE).read_text() == str(made.cache)
    assert main(["export", str(made.place), str(tmp_path / "out"), "--sums"]) == 0
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert written
    assert not any(str(made.cache).encode() in path.read_bytes() for path in written)


@PLAIN
@pytest.mark.parametrize("family", ["linear", "mlp"])
@pytest.mark.parametrize("task", TASKS)
def test_an_estimator_fitted_to_the_same_vectors_has_the_scores_of_the_run(made, task, family):
    result, arrays = made.stored[task, family]
    data = made.data[task]
    x = {split: features(data, split) for split in ("train", "dev", "test")}
    if task in ("pos", "agreement"):
        x = {split: each.astype(np.float16) for split, each in x.items()}
    y = {split: [e.label for e in part.examples] for split, part in data.examples.splits.items()}
    if task == "roles":
        held = data.examples.members[:, : len(data.examples.classes)]
        y = {split: held[data.examples.targets(split)].astype(int) for split in y}
    weight = "balanced" if task == "agreement" else None
    groups = data.examples.splits["train"].sentence
    probe = probes.LayerProbe(family, result.task.kind, class_weight=weight)
    probe.fit(x["train"], y["train"], dev=(x["dev"], y["dev"]), groups=groups)
    found = as_stored(probe.predict(x["test"]), result)
    first = arrays["predicted"][LAYER, 0]
    if task == "depth":
        np.testing.assert_allclose(found, first, atol=1e-5)
    else:
        assert (found == first).mean() > 0.995


@PLAIN
def test_the_direction_of_two_means_is_added_to_a_layer(made, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = f"--task agreement --layer {LAYER} --probe mean-difference -o probe.safetensors"
    place = [str(made.place), "--cache-dir", str(made.cache)]
    assert main(["export-probe", *place, *line.split()]) == 0
    data = made.data["agreement"]
    x, y = features(data, "train"), data.examples.targets("train")
    means = [x[y == label].mean(0) for label in (0, 1)]
    model, tokenizer = (each.from_pretrained(tiny_bert) for each in (AutoModel, AutoTokenizer))
    names = {"model": model, "inputs": tokenizer("a dog barks", return_tensors="pt")}
    exec(f"import safetensors\n{of_the_manual('from probes import Custom')}", names)
    step = torch.from_numpy(means[1] - means[0])
    torch.testing.assert_close(names["step"], step, atol=1e-5, rtol=1e-4)
    half_way = float(names["direction"].numpy() @ (means[0] + means[1]) / 2)
    assert float(names["card"]["threshold"]) == pytest.approx(half_way, abs=1e-4)
    plain = model(**names["inputs"]).last_hidden_state
    moved = names["changed"].last_hidden_state - plain
    torch.testing.assert_close(moved, step.expand_as(moved), atol=1e-5, rtol=1e-4)


@PLAIN
def test_vectors_of_transformers_itself(made, tiny_bert):
    result, arrays = made.stored["pos", "linear"]
    tokenizer, model = (each.from_pretrained(tiny_bert) for each in (AutoTokenizer, AutoModel))
    vectors, is_short = [], []
    for sentence in find_corpus("sample", limit=60).load().splits["test"]:
        given = tokenizer([list(sentence.words)], is_split_into_words=True, return_tensors="pt")
        short = given.input_ids.shape[1] <= model.config.max_position_embeddings
        is_short += [short] * len(sentence.words)
        if short:
            with torch.no_grad():
                states = model(**given, output_hidden_states=True).hidden_states[LAYER][0]
            word = np.array([-1 if n is None else n for n in given.word_ids()])
            vectors += [states[word == n].mean(0) for n in range(len(sentence.words))]
    probe = probes.read_probe(made.place, "pos", LAYER, cache_dir=made.cache)
    found = as_stored(probe.predict(torch.stack(vectors)), result)
    first = arrays["predicted"][LAYER, 0, np.array(is_short)]
    assert len(found) > 400
    assert (found == first).mean() > 0.99  # vectors are stored in float16


@PLAIN
def test_the_card_says_what_the_record_says(made, tmp_path):
    result, _ = made.stored["srl", "linear"]
    path = tmp_path / "new" / "probe.safetensors"
    command = ["export-probe", str(made.place), "--task", "srl", "--layer", "1", "-o", str(path)]
    assert main([*command, "--cache-dir", str(made.cache)]) == 0
    with safe_open(path, "np") as file:
        card = file.metadata()
        assert set(file.keys()) == {"weight", "bias"}
        assert file.get_tensor("weight").shape == (len(result.examples.classes), 32)
    low, high = result.interval(1)
    assert json.loads(card.pop("classes")) == list(result.examples.classes)
    assert (float(card["score"]), float(card["score_low"])) == (result.score(1), low)
    assert card == {
        "kind": "classification",
        "threshold": "",
        "fpr": "",
        "fpr_threshold": "",
        "norm": "",
        "family": "linear",
        "model": result.model.name,
        "model_revision": result.model.revision,
        "model_digest": result.model.digest,
        "layer": "1",
        "pooling": "mean",
        "site": "",
        "view": "plain",
        "spans": "2",
        "corpus": f"sample {result.corpus.version}, limit 60",
        "corpus_licence": result.corpus.licence,
        "corpus_citation": result.corpus.citation,
        "task": "srl",
        "task_version": str(result.task.version),
        "metric": "accuracy",
        "score": str(result.score(1)),
        "score_low": str(low),
        "score_high": str(high),
        "resampled": result.examples.resampled,
        "suite_version": probes.__version__,
        "key": result.key,
    }
    heads = re.findall(r"^\| (`.*?) \|", PAGE.path.read_text(), re.MULTILINE)
    assert {*card, "classes"} <= {name for head in heads for name in re.findall(r"\w+", head)}


@PLAIN
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--task": "poss"}, "no task 'poss'. Did you mean 'pos'?"),
        ({"--probe": "liner"}, "no probe family 'liner'. Did you mean 'linear'?"),
        ({"--layer": "9"}, "pos: layer 9 was not probed; give one of 0, 1, 2."),
        ({"--layer": "two"}, "--layer two: not a whole number."),
        ({"-o": "probe.bin"}, "probe.bin: the name must end in .safetensors."),
        ({"-o": "/dev/null/p.safetensors"}, "cannot be written"),
        ({"--cache-dir": "elsewhere"}, "the parameters of pos · linear, layer 1, are not in elsewhere; name the run's cache (cache_dir=, --cache-dir), or fit them again: call run_probes as before, with overwrite='always'."),
    ],
)  # fmt: skip
def test_what_cannot_be_exported_is_refused_in_a_line(
    made, tmp_path, monkeypatch, capsys, change, said
):
    monkeypatch.chdir(tmp_path)
    given = {"--task": "pos", "--layer": "1", "-o": "p.safetensors", "--cache-dir": str(made.cache)}
    command = [word for flag in (given | change).items() for word in flag]
    assert main(["export-probe", str(made.place), *command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not list(tmp_path.rglob("*.*"))


def test_the_command_in_the_error_fits_the_probe_again(tiny_bert, tmp_path, capsys):
    cache, results = tmp_path / "cache", tmp_path / "results"
    line = "--tasks pos --probes linear --layers 1 --limit 60 --quick --device cpu"
    places = ["--cache-dir", str(cache), "--output", str(results)]
    assert run_main(["--model", str(tiny_bert), *line.split(), *places]) == 0
    first = probes.read_probe(results, "pos", 1, cache_dir=cache)
    for path in (cache / "parameters").iterdir():
        path.unlink()
    with pytest.raises(probes.UserError) as caught:
        probes.read_probe(results, "pos", 1, cache_dir=str(cache))
    command = str(caught.value).partition("fit them again: ")[2]
    assert command.startswith("python run_probes.py --model ")
    assert run_main(shlex.split(command)[2:]) == 0
    again = probes.read_probe(results, "pos", 1, cache_dir=cache)
    assert np.array_equal(again.coef_, first.coef_)
    capsys.readouterr()


def test_one_of_several_results_has_to_be_named(tmp_path, capsys):
    first = put(tmp_path, "m", "pos", 9)
    put(tmp_path, "other", "pos", 99)
    line = "export-probe --task pos --layer 1 -o"
    command = [*line.split(), str(tmp_path / "p.safetensors")]
    assert main([*command, str(tmp_path)]) == 2
    assert "several models (m, other); name the folder of one" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "nowhere")]) == 2
    with pytest.raises(probes.UserError, match=r"no model 'n'\. Known: m, other"):
        probes.read_probe(tmp_path, "pos", 1, model="n")
    for named in (first, tmp_path / "m"):
        with pytest.raises(
            probes.UserError, match=r"are not in .*; name the run.s cache .*, or fit them again: "
        ):
            probes.read_probe(named, "pos", 1, model="m")
    put(tmp_path, "m", "pos", 7, corpus__digest="another", key="9" * 64)
    with pytest.raises(probes.UserError, match="several results of pos · linear; name one of "):
        probes.read_probe(tmp_path, "pos", 1, model="m")
