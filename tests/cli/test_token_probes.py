"""Runs with probes that read all tokens of a text or several layers, against plain code."""

import random
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr
from tiny_runs import run
from transformers import AutoModel, AutoTokenizer

from probes import LayerProbe, read_probe
from probes.cli.commands import cache
from probes.common.errors import UserError
from probes.records.parameters import read_parameters
from probes.records.record_files import read_arrays
from probes.training.dataset import ProbingData

FAMILIES = ("linear", "token-mean", "token-max", "attention", "multi-layer")
WORDS = ["the", "old", "dog", "sees", "a", "cat", "near", "house", "she", "gave", "him", "books"]


@pytest.fixture(scope="module")
def texts():
    """200 texts; those that are glad tell of birds."""
    rng, rows = random.Random(5), []
    for i in range(200):
        words, glad = rng.choices(WORDS, k=rng.randint(2, 9)), rng.random() < 0.5
        words.insert(rng.randrange(len(words)), "birds" if glad else "sun")
        mood = ("glad" if glad else "sad", ("few", "some", "many")[min(2, len(words) // 4)])
        split = ("train", "train", "train", "dev", "test")[i % 5]
        rows.append((" ".join(words), *mood, len(words) / 7, split))
    return pd.DataFrame(rows, columns=["text", "mood", "size", "length", "split"])


def run_on_texts(model, texts, folder, **settings):
    usual = {"text": "text", "label": "mood,size,length", "positions": "all", "probes": FAMILIES}
    return run(model, folder, limit=None, corpus=texts, twins=0, **{**usual, **settings})


def tokens_of(path, texts):
    """Vectors of the tokens of each text of test. Each (layers, tokens, H)."""
    model, tokenizer = (AutoModel.from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path))
    tokens = []
    for text in texts["text"][texts["split"] == "test"]:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        # Without special tokens; stored in fp16.
        layers = torch.stack(states.hidden_states)[:, 0, 1:-1]
        tokens.append(layers.half().double().numpy())
    return tokens


PLAIN = pytest.mark.parametrize("made", [None], indirect=True, scope="module")
"""Without a projection."""


@pytest.fixture(scope="module", params=[None, 5])
def made(request, tiny_bert, texts, tmp_path_factory):
    """Records of a run with their predictions and parameters, and the tokens of test texts."""
    folder = tmp_path_factory.mktemp("bags")
    results = run_on_texts(tiny_bert, texts, folder, project=request.param)
    tokens = tokens_of(tiny_bert, texts)
    found = {}
    for result in results.results:
        (path,) = folder.rglob(f"*-scores-{result.key[:8]}.json")
        stored = read_arrays(path)["predicted"][:, 0], read_parameters(folder / "cache", result.key)
        found[result.task.name.split("@")[0], result.probe.family] = result, *stored
    found["folder"] = path.parent
    return found, tokens


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def outputs_of(family, of, layer, tokens):
    """Outputs for one text from stored parameters, by the formula of docs/probes.md."""
    p = {
        name.partition(".")[2]: value
        for name, value in of.items()
        if name.startswith(f"layer-{layer:02d}.")
    }
    weight, bias = p["weight"], p["bias"]
    if family == "multi-layer":
        parts = []
        for below in range(layer + 1):
            mean, scale, last = (
                of[f"layer-{below:02d}.{x}"] for x in ("mean", "scale", "projected-scale")
            )
            parts.append((tokens[below].mean(0) - mean) * scale @ of["projection"] * last)
        return weight @ np.concatenate(parts) + bias
    x = (tokens[layer] - p["mean"]) * p["scale"]
    if "projection" in of:
        x = x @ of["projection"] * p["projected-scale"]
    if family == "token-mean":
        return (x @ weight.T + bias).mean(0)
    if family == "token-max":
        largest = (x @ weight.T).max(0)
        return (np.concatenate([-largest, largest]) / 2**0.5 if len(bias) == 2 else largest) + bias
    values = weight[4:].reshape(4, len(bias), -1)
    return bias + sum(softmax(x @ q) @ (x @ v.T) for q, v in zip(weight[:4], values, strict=True))


@pytest.mark.parametrize("label", ["mood", "size", "length"])
@pytest.mark.parametrize("family", FAMILIES[1:])
def test_stored_parameters_give_the_stored_predictions(made, family, label):
    found, tokens = made
    result, predicted, parameters = found[label, family]
    assert len(tokens) == result.examples.n["test"] == 40
    for layer in result.layers:
        outputs = np.stack([outputs_of(family, parameters, layer, text) for text in tokens])
        if label == "length":
            mean, deviation = parameters["label-unit"]
            np.testing.assert_allclose(
                outputs[:, 0] * deviation + mean, predicted[layer], atol=5e-3
            )
            continue
        top = np.sort(outputs, 1)
        clear = top[:, -1] - top[:, -2] > 0.01
        assert clear.mean() > 0.8
        assert np.array_equal(outputs.argmax(1)[clear], predicted[layer][clear])
    if (label, family) == ("mood", "attention") and "projection" not in parameters:
        assert result.score(1) > 0.9


@pytest.mark.parametrize("project", [None, 5])
def test_probes_transfer_by_their_stored_parameters(tiny_bert, texts, tmp_path, project):
    """Classes and numbers; centred vectors have the mean of this corpus's tokens."""
    other = texts.assign(text=[f"{x} and books" for x in texts["text"]]).iloc[::-1]
    corpora = {"a": texts, "b": other}
    for name, frame in corpora.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    settings = {"label": "mood,length", "probes": FAMILIES[1:], "project": project}
    settings |= {"transfer": True, "evidence": "none"}
    paths = [str(tmp_path / f"{name}.csv") for name in corpora]
    results = run_on_texts(tiny_bert, paths, tmp_path, **settings)
    parameters = {x.key: read_parameters(tmp_path / "cache", x.key) for x in results.results}
    of = {(x.corpus.name, x.task.name, x.probe.family): x for x in results.results}
    assert len(of) == 16
    compared = 0
    for (corpus, task, family), result in of.items():
        trained = of["ab".replace(corpus, ""), task, family]
        stored, rows = parameters[trained.key], result.evidence["corpus_transfer"].rows
        test = corpora[corpus][corpora[corpus]["split"] == "test"]
        tokens = tokens_of(tiny_bert, corpora[corpus])
        means = {x: y for x, y in parameters[result.key].items() if x.endswith(".mean")}
        for layer, vectors in product(result.layers, (None, "centred")):
            read = {**stored, **means} if vectors else stored
            outputs = np.stack([outputs_of(family, read, layer, text) for text in tokens])
            axes = {"train": trained.corpus.name, "vectors": vectors}
            score = rows.at("transfer_score", layer, **axes).value
            if task == "length@all":
                expected, unclear = spearmanr(outputs[:, 0], test["length"]).statistic, 0.02
            else:
                classes = np.array(trained.examples.classes)
                expected = (classes[outputs.argmax(1)] == test["mood"]).mean()
                unclear = (abs(np.diff(outputs)) < 1e-3).mean() + 1e-9
            # At layer 0 the largest token of many texts is the same, and rounding orders them.
            tied = (task, family, layer) == ("length@all", "token-max", 0)
            assert tied or score == pytest.approx(expected, abs=unclear)
            compared += 1
    assert compared == 16 * len(result.layers) * 2


@PLAIN
def test_a_probe_fitted_to_tokens_is_read_as_a_probe_of_their_mean(made):
    found, tokens = made
    probe = read_probe(found["folder"], "mood@all", 2, "token-mean")
    result, predicted, parameters = found["mood", "token-mean"]
    means = np.stack([text[2].mean(0) for text in tokens])
    expected = np.array(result.examples.classes)[predicted[2]]
    outputs = np.stack([outputs_of("token-mean", parameters, 2, text) for text in tokens])
    np.testing.assert_allclose(probe.decision_function(means), np.diff(outputs)[:, 0], atol=1e-5)
    assert (probe.predict(means) == expected).mean() > 0.95
    with pytest.raises(UserError, match="attention reads more than one vector; name one of linear"):
        read_probe(found["folder"], "mood@all", 2, "attention")
    with pytest.raises(ValueError, match="token-mean probes read all tokens of a text"):
        LayerProbe("token-mean").fit(means, expected)


@PLAIN
def test_numbers_of_parameters(made, tiny_bert):
    hidden = AutoModel.from_pretrained(tiny_bert).config.hidden_size
    expected = {
        "token-mean": 2 * hidden + 2,
        "token-max": hidden + 2,
        "attention": 4 * 3 * hidden + 2,
        "multi-layer": 2 * 3 * min(64, hidden) + 2,
    }
    found, _ = made
    assert expected == {x: found["mood", x][0].facts["probe_parameters"] for x in FAMILIES[1:]}


@PLAIN
def test_a_probe_of_several_layers_does_not_depend_on_the_layers_that_are_asked_for(
    made, tiny_bert, texts, tmp_path
):
    settings = {"probes": "multi-layer", "tasks": "mood@all"}
    expected = made[0]["mood", "multi-layer"]
    (alone,) = run_on_texts(tiny_bert, texts, tmp_path, layers="2", **settings).results
    assert alone.key == expected[0].key
    assert [*alone.extent] == [2]
    assert alone.score(2) == expected[0].score(2)
    parameters = read_parameters(tmp_path / "cache", alone.key)
    np.testing.assert_allclose(
        parameters["layer-02.weight"], expected[2]["layer-02.weight"], atol=1e-4
    )
    (more,) = run_on_texts(tiny_bert, texts, tmp_path, layers="1", **settings).results
    assert [*more.extent] == [1, 2]
    assert more.headline == {x: expected[0].headline[x] for x in (1, 2)}


def test_probes_of_words_read_several_layers_too(tiny_bert, tmp_path, short_schedule):
    (result,) = run(tiny_bert, tmp_path, tasks="pos", probes="multi-layer", memory=1).results
    (other,) = run(tiny_bert, tmp_path / "b", tasks="pos", probes="multi-layer").results
    assert result.headline == pytest.approx(other.headline, abs=0.01)
    assert len(result.layers) == 3
    assert result.score(2) > 0.35


def test_what_reads_all_tokens_is_refused_elsewhere_before_a_model_is_loaded(
    tiny_bert, texts, tmp_path, monkeypatch, capsys, short_schedule
):
    label = {"label": "mood", "probes": "token-mean,attention"}
    line = "token-mean probes read all tokens of a text; use --positions all"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probes.run.inputs.LazyModel.encoder", None)
        with pytest.raises(UserError, match=rf"serves no task \(mood@mean: {line}\)\.$"):
            run_on_texts(tiny_bert, texts, tmp_path, positions="mean", **label)
        assert "skipped" not in capsys.readouterr().err
        with pytest.raises(UserError, match=f"--tasks pos: {line}"):
            run(tiny_bert, tmp_path, tasks="pos", probes="token-mean")
    two = run_on_texts(
        tiny_bert, texts, tmp_path, positions="last,all", label="mood", probes="linear,token-mean"
    )
    names = [(x.task.name, x.probe.family) for x in two.results]
    assert names == [("mood@last", "linear"), ("mood@all", "linear"), ("mood@all", "token-mean")]
    said = capsys.readouterr().err
    assert f"mood@last · token-mean: {line}" in said
    mixed = {"positions": "last,all", "label": "mood", "probes": "linear,token-mean", "layers": "1"}
    mixed |= {"sites": "block,mid", "evidence": "full", "dry_run": True}
    run_on_texts(tiny_bert, texts, tmp_path / "planned", **mixed)
    said, table = capsys.readouterr()
    assert table.count("left out mood@last") == 1  # once for both sites
    assert "mood@last · token-mean" not in said
    assert "mood@all · token-mean" in said
    run_on_texts(tiny_bert, texts, tmp_path / "planned", **{**mixed, "layers": "0,1"})
    planned = re.findall(
        "training_variance +mood@(all|last)@mid · linear +(.*?),", capsys.readouterr().out
    )
    assert planned == [("last", "1 layer"), ("all", "1 layer")]
    # Not the six arrays of two positions, nor the lengths of bags.
    stores = cache.find_stores(tmp_path / "cache" / "vectors")
    assert [(entry.state, entry.layers) for entry in stores] == [("whole", 3)]
    with pytest.raises(UserError, match="--positions all: applies to scores only; add scores"):
        run_on_texts(tiny_bert, texts, tmp_path, positions="all", measurements="geometry")


def test_evidence_is_gathered_where_it_is_defined(tiny_bert, texts, tmp_path, short_schedule):
    results = run_on_texts(
        tiny_bert, texts, tmp_path, label="mood", quick=False, evidence="full", layers="1,2"
    )
    for result in results.results:
        expected = {"training_variance"}
        if result.probe.family == "linear":
            expected |= {"description_length"}
        assert set(result.evidence) == expected, result.probe.family
        spread = result.row("training_variance", "training_sd").value
        assert 0 < spread < 0.5


@PLAIN
def test_layers_in_groups_have_the_scores_of_layers_together(made, tiny_bert, texts, tmp_path):
    sizes = []

    def one_by_one(self, memory, spec, n_cells, n_concatenated=1):
        sizes.append(1)
        return 1, 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProbingData, "group_layers", one_by_one)
        results = run_on_texts(tiny_bert, texts, tmp_path, label="mood")
    assert len(sizes) == len(FAMILIES)
    for result in results.results:
        expected = made[0]["mood", result.probe.family][0]
        assert result.headline == pytest.approx(expected.headline, abs=0.03)
