"""Selectivity, compression and localisation as tables, from results written by hand."""

from results_by_hand import make_result

from probes.boards.evidence_tables import evidence_tables
from probes.records.payload import (
    CodeRecord,
    ControlRecord,
    Estimate,
    Localisation,
    MixResult,
    Selectivity,
)


def test_a_quick_result_has_no_evidence():
    assert evidence_tables([make_result(quick=True)]) == {}


def test_selectivity_and_compression_with_half_intervals():
    plain = make_result(scores=(0.5, 0.9))
    layers = tuple(
        layer.model_copy(
            update={
                "cells": (
                    layer.cells[0].model_copy(
                        update={"selectivity": Selectivity(task=score, control=0.25)}
                    ),
                ),
                "selectivity": (score - 0.27, score - 0.23),
                "codelength": 2000.0 / score,
                "codelength_interval": (1900.0 / score, 2100.0 / score),
            }
        )
        for layer, score in zip(plain.layers, (0.5, 0.9), strict=True)
    )
    result = plain.model_copy(
        update={
            "layers": layers,
            "control": ControlRecord(metric="accuracy", types=10, seen=0.876),
            "code": CodeRecord(ends=(9,), n_classes=4, uniform_bits=8000, prior_bits=6000),
        }
    )
    # A regression has neither, and so no column.
    other = make_result("depth", (0.1, 0.2), metric="nspr")
    selectivity, compression = evidence_tables([result, other]).values()
    assert selectivity.heads == ("layer", "pos (accuracy)")
    assert selectivity.texts == [
        ("0", "25.0 ± 2.0"),
        ("1", "65.0 ± 2.0"),
        ("test types seen in train", "88 %"),
    ]
    # 8000 / 4000, between 8000 / 4200 and 8000 / 3800.
    assert compression.texts == [
        ("0", "2.00 ± 0.10"),
        ("1", "3.60 ± 0.18"),
        ("labels alone", "1.33"),
    ]


def test_mixes_and_the_estimates_from_them():
    def mix(k, score, interval):
        given = {"accuracy": score}
        return MixResult(
            k=k, weights=(1.0,), l2=1, dev=given, test=given, intervals={"accuracy": interval}
        )

    found = Localisation(
        mixes=(mix(0, 0.5, (0.48, 0.52)), mix(1, 0.51, None)),
        total_gain=Estimate(value=0.01, interval=(-0.01, 0.03)),
        expected_layer=Estimate(value=None, interval=None, missing="no gain"),
        centre_of_gravity=Estimate(value=0.5, interval=(0.25, 0.75)),
        kl=Estimate(value=0.125, interval=None, missing="one seed"),
        seed_weights=((0.5, 0.5),),
    )
    table = evidence_tables([make_result(localisation=found)])["mix"]
    assert table.texts == [
        ("layer 0", "50.0 ± 2.0"),
        ("layers 0 to 1", "51.0"),
        ("expected layer", "undefined: no gain"),
        ("centre of gravity", "0.50 [0.25, 0.75]"),
        ("KL from uniform, bits", "0.12"),
    ]
