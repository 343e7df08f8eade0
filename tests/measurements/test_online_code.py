"""The online code of whole runs."""

from dataclasses import replace

import pytest

from probes import run_probes
from probes.training.dataset import ProbingData


@pytest.mark.real_data
def test_ewt_dev_changes_nothing_and_compression_is_sensible(
    real_data, tiny_bert, tmp_path, monkeypatch
):
    def run(name):
        return next(
            iter(
                run_probes(
                    str(tiny_bert),
                    corpus="ewt",
                    data_dir=real_data,
                    limit=150,
                    twins=0,
                    tasks=("pos",),
                    probes=("linear",),
                    output=tmp_path / name,
                    cache_dir=tmp_path / "cache",
                )
            )
        )

    result = run("a")
    code = result.code
    assert code.ends[-1] == result.examples.n["train"]
    assert 1 < code.uniform_bits / code.prior_bits < 1.3
    for layer in result.layers:
        assert sum(layer.block_bits) == pytest.approx(layer.codelength)
        assert len(layer.block_bits) == len(code.ends)
        low, high = result.compression_interval(layer)
        assert low < result.compression(layer) < high
        assert result.compression(layer) > 1.05 * code.uniform_bits / code.prior_bits
    assert result.seconds["code"] > 0

    def shuffled(self, split, features):
        made = batches(self, split, features)
        return replace(made, labels=made.labels.flip(1)) if split == "dev" else made

    batches = ProbingData.batches
    monkeypatch.setattr(ProbingData, "batches", shuffled)
    other = run("b")
    assert [layer.codelength for layer in other.layers] == [x.codelength for x in result.layers]
    assert other.layers[0].cells[0].dev_loss != result.layers[0].cells[0].dev_loss
