"""A run of the tiny model, whose probes take few steps."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from measuring import measure

from probes.data.find import find_corpus
from probes.families.structure import fit_and_score as module
from probes.families.structure import fitting
from probes.records.record_files import read_arrays


def take_few_steps(patch):
    patch.setattr(fitting, "EPOCHS", 1)
    patch.setattr(fitting, "FEWEST_STEPS", 60)


@pytest.fixture
def few_steps(monkeypatch):
    take_few_steps(monkeypatch)


@pytest.fixture(scope="session")
def structure_run(tiny_bert, session_runs, tmp_path_factory):
    """One record on 40 sentences of each split, and the vectors that it was found in.

    Attributes: record, its rows and facts, path, arrays, sentences of test, and vectors (words of
    test, H) by layer.
    """
    folder, vectors, fit_and_score = tmp_path_factory.mktemp("structure"), {}, module.fit_and_score
    corpus = session_runs.corpus(40)

    def noted(context, *more):
        vectors.update((x, context.words("test", x).astype(np.float64)) for x in context.layers)
        return fit_and_score(context, *more)

    with pytest.MonkeyPatch.context() as patch:
        take_few_steps(patch)
        patch.setattr(module, "fit_and_score", noted)
        options = {"structure": {"ranks": "3,1,99"}}
        run = measure("structure", tiny_bert, corpus, folder, options=options)
    return SimpleNamespace(
        **vars(run),
        rows=run.record.rows,
        facts=run.record.facts,
        arrays=read_arrays(run.path),
        sentences=find_corpus(str(corpus)).load().splits["test"],
        vectors=vectors,
        json=json.loads(run.path.read_bytes()),
    )
