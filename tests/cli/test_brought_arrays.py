"""What users bring from Python: arrays, tensors, models in memory, texts in few groups."""

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from torch import nn
from transformers import BertConfig, BertModel

import probes
from probes.run.announcements import announce_corpus

X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
Y = np.arange(300) % 2


@pytest.mark.parametrize("given", [(X, Y), (X,), (probes.Vectors({0: X}, Y), Y)])
def test_probe_says_what_to_write(given):
    with pytest.raises(probes.UserError, match=r"write probe\(Vectors\(\{0: x\}, y\)\)"):
        probes.probe(*given)


def test_tensors_in_bfloat16_are_cast():
    given = torch.tensor(X).bfloat16()
    assert (probes.Vectors({0: given}, Y).layers[0] == given.float().numpy()).all()


@pytest.mark.parametrize("make", [coo_array, csr_matrix, csc_array])
def test_codes_in_a_sparse_matrix_have_the_scores_of_a_dense_one(make, tmp_path, monkeypatch):
    codes = np.where(X > 0.5, X, 0)
    shapes, dense, scores = [], csr_array.toarray, []
    monkeypatch.setattr(csr_array, "toarray", lambda x: shapes.append(x.shape) or dense(x))
    for given in (codes, make(codes)):
        vectors = probes.Vectors({0: given}, Y)
        places = {"output": tmp_path / f"{len(scores)}", "cache_dir": tmp_path / "cache"}
        results = probes.probe(vectors, evidence="none", probes=("linear", "sparse"), **places)
        scores.append([result.score(0) for result in results])
    assert scores[0] == scores[1]
    blocks = [n for n, width in shapes if width == codes.shape[1]]
    assert sum(blocks) == len(codes)
    assert max(blocks) < len(codes) / 2


def test_a_value_in_a_sparse_matrix_that_is_not_finite_is_named():
    codes = csr_array(np.where(X > 0, X, 0))
    codes.data[codes.indptr[7]] = np.nan
    with pytest.raises(probes.UserError, match="layer 0, example 7 "):
        probes.Vectors({0: codes}, Y)


def test_noise_is_not_above_the_floor_and_flags_are_not_named(tmp_path, capsys):
    vectors = probes.Vectors({0: X, 1: X}, Y, types=Y.astype(str))
    probes.probe(vectors, evidence="none", output=tmp_path / "r", cache_dir=tmp_path / "c")
    said = capsys.readouterr().err
    assert "best layer 0, not above the floor · " in said
    assert " · a class per example, accuracy" in said
    assert "next    without evidence='none' it adds the evidence behind these scores" in said


@pytest.mark.parametrize("how", ["configuration", "modules"])
def test_a_quantised_model_in_memory_is_refused(how, tmp_path):
    model = BertModel(
        BertConfig(vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    )
    if how == "configuration":
        model.config.quantization_config = {"quant_method": "awq"}
    else:
        model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    with pytest.raises(probes.UserError, match="the BertModel is quantised"):
        probes.run_probes(model, lambda: None, corpus="sample", output=tmp_path)


@pytest.mark.parametrize(("n", "warned"), [(19, True), (20, False)])
def test_texts_of_few_groups_are_warned_of(n, warned, capsys):
    texts = tuple(
        probes.Sentence(f"{i}", "", (f"text {i}",), document=f"{i % n}", whole=True)
        for i in range(40)
    )
    announce_corpus(probes.Corpus("x", "", "", dict.fromkeys(("train", "dev", "test"), texts)), 0)
    assert ("x: 19 groups in test; with fewer than 20" in capsys.readouterr().err) == warned
