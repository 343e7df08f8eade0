"""Directions of linear probes that move or stay as planted, against numpy, scipy and closed forms."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from found_in_rows import overlaps_in
from planted_task import PlantedTask
from results_by_hand import evidence_record, make_result
from scipy.linalg import subspace_angles
from tiny_runs import files_of, found_in, run

import probes.measurements.principal_angles as principal_angles
from probes.__main__ import main
from probes.examples.examples import NotServedError
from probes.measurements.context import Context
from probes.measurements.measurement import Request
from probes.measurements.principal_angles import PrincipalAngles
from probes.measurements.scores import ScoreMeasurement
from probes.records.curves import Point
from probes.records.probe_spec import PROBES
from probes.records.row import Row, Rows
from probes.tasks.builtin import tasks
from probes.training.fit import Draw

SIZES = {"train": 3000, "dev": 300, "test": 300}


def measured(layers, labels, **how):
    """Vectors, context and what is found, for vectors of layers and labels by split."""
    vectors = {split: np.stack([layer[split] for layer in layers]) for split in SIZES}
    planted = PlantedTask(vectors, labels, **how)
    context = planted.context(tuple(range(len(layers))))
    scores = ScoreMeasurement().compute(context)
    scored = SimpleNamespace(key="0" * 64, at=Rows.of(scores.rows).at)
    probing = replace(context.probing, scores=scored, arrays=scores.arrays)
    context = replace(context, probing=probing)
    return vectors, context, PrincipalAngles().compute(context)


def draw(make):
    """What `make` returns for a generator and a number of examples, by split: lists of arrays."""
    every = {split: make(np.random.default_rng(n), n) for split, n in SIZES.items()}
    n_parts = len(every["train"])
    return [{split: parts[i] for split, parts in every.items()} for i in range(n_parts)]


def test_a_filter_turns_with_a_distractor_and_the_pattern_does_not():
    """Two channels (Haufe et al. 2014): (s, d), then (s + d, d), from which s is the difference."""

    def make(rng, n):
        s, d = rng.normal(size=(2, n))
        y = s + 0.1 * rng.normal(size=n)
        return np.stack([s, d], 1), np.stack([s + d, d], 1), y

    plain, mixed, y = draw(make)
    labels = {split: each.tolist() for split, each in y.items()}
    *_, found = measured([plain, mixed], labels, kind="regression", metric="corpus_spearman")
    weights, patterns = (overlaps_in(found, kind) for kind in ("weights", "patterns"))
    assert weights.dimensions == [1, 1]
    # Standardised, s + d has a deviation of √2: weights are (1, 0) and (√2, −1) / √3.
    assert weights.overlap[0][1] == pytest.approx(2 / 3, abs=0.02)
    assert patterns.overlap[0][1] == pytest.approx(1, abs=0.01)
    assert weights.overlap[1][1] == pytest.approx(1, abs=0.01)
    assert weights.chance == [[0.5, 0.5], [0.5, 0.5]]


N_FEATURES, CLASSES = 12, "abcd"


@pytest.fixture(scope="module")
def moved():
    """The same vectors twice, then with other places for the label, then in other units."""
    truth = np.random.default_rng(9).normal(size=(3, 4))

    def make(rng, n):
        x = rng.normal(size=(n, N_FEATURES))
        y = (x[:, :3] @ truth + 0.5 * rng.normal(size=(n, 4))).argmax(1)
        return x, y

    x, y = draw(make)
    order, unit = np.roll(np.arange(N_FEATURES), 3), np.geomspace(1, 30, N_FEATURES)
    layers = [
        x,
        x,
        {split: each[:, order] for split, each in x.items()},
        {split: each * unit for split, each in x.items()},
    ]
    labels = {split: ["abcd"[k] for k in each] for split, each in y.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(principal_angles, "RANDOM", 4000)
        return measured(layers, labels)


def test_directions_that_stay_overlap_like_a_layer_with_itself(moved):
    every = {kind: overlaps_in(moved[-1], kind) for kind in ("patterns", "weights")}
    assert every["weights"].dimensions == [3, 3, 3, 3]
    for kind in every.values():
        overlap = np.array(kind.overlap)
        assert overlap[0, 1] == pytest.approx(overlap[0, 0], abs=1e-5)
        assert overlap[0, 0] == pytest.approx(overlap[2, 2], abs=1e-3)
        assert 0.97 < overlap[0, 0] < 1
        # All that the label depends on lies in other dimensions.
        assert overlap[0, 2] < 0.02
    # Standardised features are the same in every unit; vectors are not.
    weights, patterns = (np.array(every[kind].overlap) for kind in ("weights", "patterns"))
    assert weights[0, 3] == pytest.approx(weights[0, 0], abs=1e-3)
    assert patterns[0, 3] < patterns[0, 0] - 0.01


def test_chance_is_the_share_of_dimensions(moved):
    weights, patterns = (overlaps_in(moved[-1], kind) for kind in ("weights", "patterns"))
    assert np.array(weights.chance) == pytest.approx(3 / N_FEATURES)
    # Features are independent and of one unit, so that random patterns are random directions.
    assert np.array(patterns.chance)[:3, :3] == pytest.approx(3 / N_FEATURES, abs=0.015)
    # Where some vary more than others, random patterns lie near these.
    assert patterns.chance[3][3] > patterns.chance[0][0] + 0.05


def test_angles_are_scipys_between_covariances_with_outputs(moved):
    vectors, context, found = moved
    reported = context.parameters([0, 2, 3])
    sample = context.fits([0, 2, 3], [Draw(sample=1)]).parameters

    def spans(parameters, layer):
        weight, mean, scale = (
            parameters[f"layer-{layer:02d}.{name}"].astype(float)
            for name in ("weight", "mean", "scale")
        )
        x = vectors["train"][layer]
        outputs = ((x - mean) * scale) @ weight.T
        patterns = np.cov(x.T, outputs.T)[: x.shape[1], x.shape[1] :]
        return [each - each.mean(1, keepdims=True) for each in (patterns, weight.T)]

    for a, b in ((0, 2), (2, 0), (0, 3), (3, 3)):
        ours = (found.arrays[kind][a, b] for kind in ("patterns", "weights"))
        for angles, first, second in zip(ours, spans(reported, a), spans(sample, b), strict=True):
            # Of four centred columns one is a sum of the others.
            theirs = np.degrees(subspace_angles(first[:, :3], second[:, :3]))[::-1]
            assert angles == pytest.approx(theirs, abs=0.05)


def test_where_nothing_is_learnt_there_is_no_direction():
    def make(rng, n):
        x = rng.normal(size=(n, 4))
        return x, np.ones((n, 4)), np.where(x[:, 0] > 0, "yes", "no")

    x, constant, y = draw(make)
    labels = {split: each.tolist() for split, each in y.items()}
    *_, found = measured([x, constant], labels)
    patterns, weights = (overlaps_in(found, kind) for kind in ("patterns", "weights"))
    assert weights.dimensions == [1, 0]
    for kind in (patterns, weights):
        assert kind.overlap[0][1] is kind.overlap[1][1] is kind.chance[1][0] is None
        assert kind.overlap[0][0] is not None
    assert np.isnan(found.arrays["weights"][1]).all()


def test_projected_vectors_are_refused_and_only_linear_probes_have_directions():
    def make(rng, n):
        return (rng.normal(size=(n, 6)),)

    (x,) = draw(make)
    labels = {split: ["a", "b", "c"] * (n // 3) for split, n in SIZES.items()}
    with pytest.raises(NotServedError, match="with --project there are no directions of the"):
        measured([x, x], labels, project=3)
    its = PrincipalAngles()
    assert (
        its.missing(tasks.get("pos"), PROBES["mlp"], "full") == "only linear probes have directions"
    )
    assert its.missing(tasks.get("depth"), PROBES["linear"], "standard") == ""
    assert its.extent(Request((0, 3), 6)) == {0: 1, 3: 1}
    assert its.extent(Request((3,), 6)) == {}


def by_hand(overlap, chance, layers):
    """Rows of overlaps; those of weights are those of patterns, from the last layer on."""
    rows = [
        Row(metric, matrix[i][j], layer, split="train", axes={"of": kind, "with": other})
        for kind, given in (("patterns", overlap), ("weights", overlap[::-1]))
        for i, layer in enumerate(layers)
        for j, other in enumerate(layers[: i + 1])
        for metric, matrix in (("overlap", given), ("chance", chance))
    ]
    return [*rows, *(Row("directions", 2, layer, split="train") for layer in layers)]


def test_tables_numbers_and_curves_of_overlaps_made_by_hand():
    its = PrincipalAngles()
    result = make_result("pos", (0.1, 0.2, 0.3), layers=(0, 3, 6))
    overlap = ((0.9, 0.6, 0.3), (0.6, 0.8, None), (0.3, None, 1.0))
    chance = ((0.1, 0.2, 0.1), (0.2, 0.1, None), (0.1, None, 0.1))
    rows = by_hand(overlap, chance, (0, 3, 6))
    result = result.with_evidence(evidence_record(result, "principal_angles", rows))
    few = by_hand(((1, 0.5), (0.5, 1)), ((0, 0), (0, 0)), (0, 3))
    other = make_result("depth", (0.1, 0.2), layers=(0, 3))
    other = other.with_evidence(evidence_record(other, "principal_angles", few))
    patterns, also, weights, _ = its.tables([result, other])
    assert patterns.heads == ("layer", "0", "3", "6")
    assert patterns.texts == [
        ("0", "90.0", "–", "–"),
        ("3", "60.0", "80.0", "–"),
        ("6", "30.0", "–", "100.0"),
        ("chance, layer 0", "10.0", "–", "–"),
        ("chance, layer 3", "20.0", "10.0", "–"),
        ("chance, layer 6", "10.0", "–", "10.0"),
    ]
    assert [row[1:] for row in also.texts[:2]] == [("100.0", "–"), ("50.0", "100.0")]
    assert (patterns.title, also.title, weights.title) == (
        "principal angles · pos · overlap of patterns with lower layers, %",
        "principal angles · depth · overlap of patterns with lower layers, %",
        "principal angles · pos · overlap of weights with lower layers, %",
    )
    curves, _ = its.charts({"m": result, "n": make_result()})
    assert curves.models == {
        "m": [
            Point(0, 0.9, line="itself"),
            Point(3, 0.6, line="layer below"),
            Point(3, 0.2, line="chance"),
            Point(3, 0.8, line="itself"),
            Point(6, None, line="layer below"),
            Point(6, None, line="chance"),
            Point(6, 1.0, line="itself"),
        ]
    }
    assert curves.missing == {"n": "there is no record of it"}


@pytest.mark.usefixtures("short_schedule")
def test_a_run_has_tables_and_rows_of_it_with_and_without_stored_parameters(
    tiny_bert, tmp_path, capsys, monkeypatch
):
    settings = {"tasks": ("pos", "srl"), "evidence": "principal_angles", "twins": 0, "quick": False}
    results = run(tiny_bert, tmp_path, **settings)
    said = capsys.readouterr().err
    assert "left out pos · mlp · principal_angles: only linear probes have directions" in said
    pos, srl = (r for r in results if r.probe.family == "linear")
    assert pos.evidence["principal_angles"].extent == {0: 1, 1: 1, 2: 1}
    # The vectors of a predicate and an argument are concatenated.
    width, found = pos.model.hidden_size, overlaps_in(srl.evidence["principal_angles"], "weights")
    assert found.chance[0][0] == pytest.approx(found.dimensions[0] / (2 * width))
    with (tmp_path / "results" / "measurements.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["metric"] for row in rows} == {"overlap", "chance", "directions"}
    assert {row["axes"] for row in rows if row["layer"] == "1" and row["axes"]} == {
        f"of={kind} with={other}" for kind in ("patterns", "weights") for other in (0, 1)
    }
    assert main(["show", str(tmp_path / "results"), "--by", "principal_angles"]) == 0
    assert "overlap of patterns with lower layers, %" in " ".join(capsys.readouterr().out.split())

    before, first = files_of(tmp_path), found_in(results)
    for path in (tmp_path / "cache" / "parameters").iterdir():
        path.unlink()
    run(tiny_bert, tmp_path, **settings)
    assert files_of(tmp_path) == before
    for path in (tmp_path / "results").rglob("*principal_angles*"):
        path.unlink()
    asked = []
    fits = Context.fits

    def noted(self, layers, draws, **more):
        asked.append([draw.sample for draw in draws])
        return fits(self, layers, draws, **more)

    monkeypatch.setattr(Context, "fits", noted)
    again = found_in(run(tiny_bert, tmp_path, **settings))
    assert asked == [[0], [1]] * 2
    for key, rows in again.items():
        if key[-1] == "principal_angles":
            for kind in ("patterns", "weights"):
                ours, theirs = (np.array(overlaps_in(x, kind).overlap) for x in (rows, first[key]))
                assert ours == pytest.approx(theirs, abs=1e-3)
