"""A run of the tiny model, whose probes take few steps."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from killing import small_corpus

from probes.cli.main import main
from probes.data.find import find_corpus
from probes.records.files import find_records, read_arrays


@pytest.fixture(scope="module")
def few_steps():
    from probes.measurements.structure import fitting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "EPOCHS", 1)
        patch.setattr(fitting, "FEWEST_STEPS", 60)
        yield


@pytest.fixture(scope="module")
def measured(tiny_bert, tmp_path_factory):
    """Measures structure; what is then in the folders."""

    def measured(folder, corpus, *more, model=tiny_bert):
        places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
        line = ["--model", str(model), "--corpus", str(corpus), "--measurements", "structure"]
        line += ["--device", "cpu", "--threads", "1", "-q", *places, *more]
        status = main(line)
        found = {
            path: record
            for path, record in find_records(folder / "results").items()
            if record.measurement == "structure"
        }
        return SimpleNamespace(status=status, records=found, folder=folder, line=line)

    return measured


@pytest.fixture(scope="module")
def run(measured, few_steps, tmp_path_factory):
    """One record on 40 sentences of each split, and the vectors that it was found in.

    Attributes: record, its rows and facts, path, arrays, sentences of test, and vectors (words of
    test, H) by layer.
    """
    from probes.measurements.structure import fit_and_score as module

    folder, vectors, fit_and_score = tmp_path_factory.mktemp("structure"), {}, module.fit_and_score
    corpus = small_corpus(folder / "small", 40)

    def noted(context, *more):
        vectors.update((x, context.words("test", x).astype(np.float64)) for x in context.layers)
        return fit_and_score(context, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fit_and_score", noted)
        found = measured(folder, corpus, "--structure-ranks", "3,1,99", "--twins", "0")
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
