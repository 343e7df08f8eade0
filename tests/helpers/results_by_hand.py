"""Results written by hand, for tests of what is derived from them."""

from __future__ import annotations

from probes.records.header import (
    CorpusRecord,
    EncodingRecord,
    ExampleCounts,
    ModelRecord,
    TaskRecord,
)
from probes.records.payload import (
    Cell,
    CodeRecord,
    ControlRecord,
    Estimate,
    LayerResult,
    Localisation,
    MixResult,
    Selectivity,
)
from probes.records.probe_spec import PROBES
from probes.records.result import SCHEMA_VERSION, Result


def make_result(task="pos", scores=(0.1, 0.2), p_best=None, *, layers=None, n_layers=None, **more):
    """A result with these test scores, which are dev's too.

    Args:
        p_best: corrected p-values by layer; .001 for every layer but the best if not given.
    """
    layers = tuple(range(len(scores))) if layers is None else layers
    best = max(range(len(scores)), key=lambda i: (scores[i] or 0, -i))
    p_best = p_best or [None if i == best else 0.001 for i in range(len(scores))]
    metric = more.pop("metric", "accuracy")
    fields = {
        "schema_version": SCHEMA_VERSION,
        "suite_version": "0",
        "key": "0" * 64,
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
        "probe_parameters": 1,
        "quick": False,
        "control": None,
        "examples": ExampleCounts(
            n={"train": 9, "dev": 9, "test": 9},
            labels=more.pop("labels", {}),
            excluded={},
            unseen_test_labels=more.pop("unseen", {}),
            groups=more.pop("groups", {}),
            covered_sentences=None,
        ),
        "group_metric": "accuracy",
        "layers": tuple(
            LayerResult(layer=layer, cells=(_cell(score, metric),), p_best=p)
            for layer, score, p in zip(layers, scores, p_best, strict=True)
        ),
        "baselines": {"majority": {metric: 0.1}, "type majority": {metric: 0.1}},
        "references": {},
        "encoding": EncodingRecord(
            storage="float16", unknown_words=0, texts_in_several_windows=0, batch_tokens=1
        ),
        "seconds": {},
        "provenance": {},
    }
    return Result(**{**fields, **more})


def _cell(score, metric):
    given = {metric: score}
    return Cell(seed=0, l2=0.1, stopped=1.0, dev_loss=1.0, dev=given, test=given, groups={})


def make_full_result(task="pos", scores=(0.5, 0.7, 0.6), *, half=0.02, located=True, **more):
    """A result with intervals, selectivity, codelengths, groups and mixes."""
    metric = more.get("metric", "accuracy")
    given = make_result(
        task,
        scores,
        groups={"seen": 5, "unseen": 4},
        labels={"a": (5, 5, 5), "b": (4, 4, 4)},
        **more,
    )
    layers = tuple(
        layer.model_copy(
            update={
                "cells": (
                    layer.cells[0].model_copy(
                        update={
                            "selectivity": Selectivity(task=score, control=0.3),
                            "groups": {"seen": score, "unseen": score - 0.1},
                        }
                    ),
                ),
                "intervals": {metric: (score - half, score + half)},
                "selectivity": (score - 0.3 - half, score - 0.3 + half),
                "codelength": 100 / score,
                "codelength_interval": (90 / score, 110 / score),
            }
        )
        for layer, score in zip(given.layers, scores, strict=True)
    )
    return given.model_copy(
        update={
            "layers": layers,
            "control": ControlRecord(metric=metric, types=9, seen=0.9),
            "code": CodeRecord(ends=(9,), n_classes=2, uniform_bits=300.0, prior_bits=280.0),
            "localisation": _localisation(scores, metric, half, located=located),
        }
    )


def _localisation(scores, metric, half, *, located):
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
    return Localisation(
        mixes=mixes,
        total_gain=Estimate(value=0.1, interval=(0.05, 0.15)),
        expected_layer=Estimate(value=1.25, interval=(1.0, 1.5)) if located else undefined,
        centre_of_gravity=Estimate(value=1.5, interval=(1.25, 1.75)),
        kl=Estimate(value=0.25, interval=(0.0, 0.5)),
        seed_weights=(mixes[-1].weights,),
    )
