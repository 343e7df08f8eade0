"""Language models that know a grammar."""

import pytest
from grammar_models import grammar_models
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

CLASSES = {"masked": AutoModelForMaskedLM, "causal": AutoModelForCausalLM}


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return grammar_models(tmp_path_factory)


@pytest.fixture(scope="session")
def plain(folders):
    """As transformers loads them."""
    return {
        kind: (CLASSES[kind].from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path))
        for kind, path in folders.items()
    }
