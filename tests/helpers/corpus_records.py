"""Records of measurements of a corpus, by hand."""

from __future__ import annotations

from results_by_hand import make_result

from probes.measurements.geometry.payload import (
    Clustering,
    Findings,
    Labels,
    LayerGeometry,
    Similarity,
)
from probes.measurements.measurement import get_measurement
from probes.records.files import write_record
from probes.records.keys import record_key, record_name
from probes.records.record import Record
from probes.records.values import Estimate

NONE = Estimate(value=None, interval=None, missing="too few")


def estimate(value, half=0.01):
    return Estimate(value=value, interval=(value - half, value + half))


def corpus_record(measurement, payload, n_layers, *, model="m", digest="m", key="3" * 64, **more):
    """A record of a measurement of the corpus `c`, which is that of results by hand."""
    result = make_result(model=model, n_layers=n_layers, p_best=False, **more.pop("result", {}))
    fields = {name: getattr(result, name) for name in Record.model_fields}
    its = get_measurement(measurement)
    fields |= {
        "measurement": measurement,
        "measurement_version": its.version,
        "settings": its.options().model_dump(mode="json"),
        "model": result.model.model_copy(update={"digest": digest}),
        "extent": dict.fromkeys(range(n_layers + 1), 1),
        "task": None,
        "probe": None,
        "arrays": (),
        "key": key,
        "payload": payload,
    }
    return Record(**{**fields, **more})


def geometry(anisotropy, *, half=0.01, self_similarity=None, explainable=0.02, chunks=None, **more):
    """A record of geometry; the other numbers are absent.

    Args:
        anisotropy, self_similarity, chunks: by layer; the second less its baseline, the third the
            adjusted mutual information of clusters of chunks.
        explainable: the maximum explainable variance less its baseline, of every layer.
    """
    n = len(anisotropy)
    similar = self_similarity or [0.5] * n
    clusters = chunks or [0.3] * n
    layers = tuple(
        LayerGeometry(
            layer=layer,
            anisotropy=estimate(anisotropy[layer], half),
            standardised_anisotropy=0.0,
            dominant=(),
            self_similarity=_similarity(similar[layer], half),
            intra_sentence_similarity=_similarity(0.1, half),
            maximum_explainable_variance=_similarity(explainable, half),
            participation_ratio=10.0 + layer,
            norm_mean=1.0,
            norm_sd=0.1,
            zero_vectors=0,
            position_share=0.1,
            position_share_within_types=0.2,
            clusters={
                "chunks": Clustering(nmi=NONE, ami=estimate(clusters[layer], half)),
                "senses": Clustering(nmi=NONE, ami=estimate(more.get("senses", 0.2), half)),
            },
        )
        for layer in range(n)
    )
    more.pop("senses", None)
    found = Findings(
        layers=layers,
        cka=tuple(tuple(1 - abs(i - j) / 10 for i in range(n)) for j in range(n)),
        words=100,
        sentences=10,
        far_words=0,
        in_several_windows=0,
        types=5,
        resampled="sentences",
        labels={
            name: Labels(items=9, available=9, classes=3, left_out=0, lemmas=int(name == "senses"))
            for name in ("chunks", "senses")
        },
        missing={},
        dimensions=4,
    )
    return corpus_record("geometry", found, n - 1, **more)


def _similarity(adjusted, half):
    return Similarity(raw=estimate(0.9), baseline=estimate(0.1), adjusted=estimate(adjusted, half))


def store_record(folder, record):
    """Write a record into the folder of its model and corpus; return its path."""
    key = record_key(
        f"{record.model.digest} {record.corpus.digest}", record.measurement, 1, record.settings
    )
    place = folder / record.model.name.replace(":", "-") / record.corpus.name
    path = place / record_name("", "", record.measurement, key)
    write_record(path, record.model_copy(update={"key": key}), {})
    return path
