"""Results written by hand, for tests of what is derived from them."""

from __future__ import annotations

from probes.measurements.localisation import Mixes, MixResult
from probes.measurements.measurement import NoPayload
from probes.measurements.scores import ScoreMeasurement
from probes.measurements.training_variance import LayerVariance, Spread, Variances
from probes.records.header import (
    CorpusRecord,
    EncodingRecord,
    ExampleCounts,
    ModelRecord,
    TaskRecord,
)
from probes.records.probe_scores import FitScores, LayerScores, ProbeScores
from probes.records.probe_spec import PROBES
from probes.records.record import SCHEMA_VERSION, Record
from probes.records.result import Result
from probes.records.row import Row, Rows
from probes.records.values import Estimate


def make_result(task="pos", scores=(0.1, 0.2), p_best=None, *, layers=None, n_layers=None, **more):
    """A result with these test scores, which are dev's too, and training variance.

    Args:
        p_best: p-values by layer, None where nothing could be tested; 1 for the best layer and .001
            for every other one if not given; False for a result without training variance.
        more: fields of the record, of its payload, or `model`, `random_seed`, `metric`, `labels`,
            `unseen`, `groups`, `resampled` and `clusters`.
    """
    layers = tuple(range(len(scores))) if layers is None else layers
    best = max(range(len(scores)), key=lambda i: (scores[i] or 0, -i))
    if p_best is None:
        p_best = [1.0 if i == best else 0.001 for i in range(len(scores))]
    metric = more.pop("metric", "accuracy")
    payload = {
        "probe_parameters": 1,
        "examples": ExampleCounts(
            n={"train": 9, "dev": 9, "test": 9},
            labels=more.pop("labels", {}),
            excluded={},
            unseen_test_labels=more.pop("unseen", {}),
            groups=more.pop("groups", {}),
            typed=True,
            covered_sentences=None,
            resampled=more.pop("resampled", "sentences"),
            clusters=more.pop("clusters", 9),
            test_digest="e" * 64,
        ),
        "group_metric": "accuracy",
        "layers": tuple(
            LayerScores(layer=layer, fits=(_fit(score, metric),))
            for layer, score in zip(layers, scores, strict=True)
        ),
        "baselines": {"majority": {metric: 0.1}, "type majority": {metric: 0.1}},
        "references": {},
    }
    payload |= {name: more.pop(name) for name in list(more) if name in payload}
    fields = {
        "schema_version": SCHEMA_VERSION,
        "suite_version": "0",
        "measurement": "scores",
        "measurement_version": ScoreMeasurement.version,
        "key": "0" * 64,
        "inputs": "1" * 64,
        "extent": {layer.layer: len(layer.fits) for layer in payload["layers"]},
        "model": ModelRecord(
            name=more.pop("model", "m"),
            revision="",
            digest="m",
            architecture="a",
            n_layers=n_layers or max(layers),
            hidden_size=4,
            parameters=1,
            window=8,
            causal=False,
            random_seed=more.pop("random_seed", None),
        ),
        "corpus": CorpusRecord(
            name="c",
            version="1",
            licence="",
            citation="",
            silver=(),
            digest="c",
            fingerprint="f" * 64,
            sentences={},
            words={},
            notes={},
            limit=None,
            limited=False,
        ),
        "task": TaskRecord(
            name=task, version=1, needs=(), kind="classification", shape="word", metric=metric
        ),
        "view": "plain",
        "pooling": "mean",
        "dtype": "float32",
        "fit_dtype": "float32",
        "probe": PROBES["linear"],
        "project": None,
        "encoding": EncodingRecord(
            storage="float16", unknown_words=0, texts_in_several_windows=0, batch_tokens=1
        ),
        "seconds": {},
        "provenance": {},
        "payload": ProbeScores(**payload),
    }
    result = Result(**{**fields, **more})
    if p_best is False:
        return result
    variances = Variances(
        layers=tuple(LayerVariance(layer=x, reseeded=(), resampled=()) for x in layers),
        resampled="sentences",
        seeds=None,
        both=Spread(sd=0.01, df=4),
        p_best=dict(zip(layers, p_best, strict=True)),
    )
    return result.with_evidence(evidence_record(result, "training_variance", variances))


def evidence_record(result, measurement, payload, **more):
    """A record of evidence behind a result.

    Args:
        payload: or a list of rows.
    """
    fields = {name: getattr(result, name) for name in Record.model_fields}
    if isinstance(payload, list):
        fields["rows"], payload = Rows.of(payload), NoPayload()
    fields |= {"measurement": measurement, "key": "2" * 64, "arrays": (), "payload": payload}
    fields["behind"] = result.headline
    return Record(**{**fields, **more})


def with_layers(result, **update):
    """The result with fields of all its layers replaced; callables are given each layer."""
    layers = tuple(
        layer.model_copy(
            update={
                name: value(layer) if callable(value) else value for name, value in update.items()
            }
        )
        for layer in result.layers
    )
    return result.model_copy(
        update={"payload": result.payload.model_copy(update={"layers": layers})}
    )


def _fit(score, metric):
    given = {metric: score}
    return FitScores(seed=0, l2=0.1, stopped=1.0, dev_loss=1.0, dev=given, test=given, groups={})


def make_full_result(task="pos", scores=(0.5, 0.7, 0.6), *, half=0.02, located=True, **more):
    """A result with intervals, groups and all evidence."""
    metric = more.get("metric", "accuracy")
    given = make_result(
        task,
        scores,
        groups={"seen": 5, "unseen": 4},
        labels={"a": (5, 5, 5), "b": (4, 4, 4)},
        **more,
    )

    def score(layer):
        return layer.fits[0].test[metric]

    result = with_layers(
        given,
        fits=lambda layer: (
            layer.fits[0].model_copy(
                update={"groups": {"seen": score(layer), "unseen": score(layer) - 0.1}}
            ),
        ),
        intervals=lambda layer: {metric: (score(layer) - half, score(layer) + half)},
    )
    controls = [
        Row(
            "selectivity",
            score(x) - 0.3,
            x.layer,
            score(x) - 0.3 - half,
            score(x) - 0.3 + half,
        )
        for x in given.layers
    ]
    codes = [Row("compression", 300 / 280, split="train", axes={"baseline": "labels alone"})]
    for x in given.layers:
        low, high = 300 * score(x) / 110, 300 * score(x) / 90
        codes += [
            Row("codelength", 100 / score(x), x.layer, split="train"),
            Row("compression", 3 * score(x), x.layer, low, high, split="train"),
            Row("bits_per_label", 10 / score(x), x.layer, split="train", axes={"examples": 0}),
            Row("bits_per_label", 12 / score(x), x.layer, split="train", axes={"examples": 4}),
        ]
    gains = [
        row
        for x in given.layers[1:]
        for row in (
            Row("added_bits", 2 * score(x), x.layer, 2 * score(x) - half, 2 * score(x) + half),
            Row(
                "added_points",
                score(x) - 0.3,
                x.layer,
                score(x) - 0.3 - half,
                score(x) - 0.3 + half,
            ),
        )
    ]
    mixes = _mixes(scores, metric, half, located=located)
    return result.with_evidence(
        evidence_record(result, "selectivity", controls),
        evidence_record(result, "conditional_probing", gains),
        evidence_record(result, "description_length", codes),
        evidence_record(result, "localisation", mixes),
    )


def _mixes(scores, metric, half, *, located):
    mixes = tuple(
        MixResult(
            k=k,
            weights=(1 / (k + 1),) * (k + 1),
            l2=0.1,
            dev={metric: score},
            test={metric: score},
            intervals={metric: (score - half, score + half)},
        )
        for k, score in enumerate(scores)
    )
    undefined = Estimate(value=None, interval=None, missing="no gain")
    return Mixes(
        mixes=mixes,
        total_gain=Estimate(value=0.1, interval=(0.05, 0.15)),
        expected_layer=Estimate(value=1.25, interval=(1.0, 1.5)) if located else undefined,
        centre_of_gravity=Estimate(value=1.5, interval=(1.25, 1.75)),
        kl=Estimate(value=0.25, interval=(0.0, 0.5)),
        sample_weights=(mixes[-1].weights,),
    )
