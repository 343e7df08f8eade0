"""A run of the tiny model, whose probes take few steps."""

import json
from types import SimpleNamespace

import measuring
import numpy as np
import pytest
from killing import small_corpus

from probes.data.find import find_corpus
from probes.records.record_files import read_arrays


@pytest.fixture(scope="module")
def few_steps():
    from probes.families.structure import fitting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "EPOCHS", 1)
        patch.setattr(fitting, "FEWEST_STEPS", 60)
        yield


@pytest.fixture(scope="module")
def measured(tiny_bert):
    """Measures structure; what is then in the folders."""

    def measured(folder, corpus, *more):
        return measuring.measured(tiny_bert, corpus, folder, "-q", *more, measurement="structure")

    return measured


@pytest.fixture(scope="module")
def run(measured, few_steps, tmp_path_factory):
    """One record on 40 sentences of each split, and the vectors that it was found in.

    Attributes: record, its rows and facts, path, arrays, sentences of test, and vectors (words of
    test, H) by layer.
    """
    from probes.families.structure import fit_and_score as module

    folder, vectors, fit_and_score = tmp_path_factory.mktemp("structure"), {}, module.fit_and_score
    corpus = small_corpus(folder / "small", 40)

    def noted(context, *more):
        vectors.update((x, context.words("test", x).astype(np.float64)) for x in context.layers)
        return fit_and_score(context, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fit_and_score", noted)
        found = measured(folder, corpus, "--structure-ranks", "3,1,99")
    assert found.status == 0
    ((path, record),) = found.records.items()
    return SimpleNamespace(
        record=record,
        rows=list(record.rows),
        facts=record.facts,
        path=path,
        arrays=read_arrays(path),
        sentences=find_corpus(str(corpus)).load().splits["test"],
        vectors=vectors,
        folder=folder,
        corpus=corpus,
        line=found.line,
        json=json.loads(path.read_bytes()),
    )
