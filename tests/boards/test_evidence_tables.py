"""Evidence behind scores as tables and curves, from results written by hand."""

import pytest
from results_by_hand import evidence_record, make_full_result, make_result, variance_rows

from probes.boards.breakdown_tables import evidence_tables
from probes.boards.layer_tables import score_table
from probes.measurements.description_length import DescriptionLength
from probes.measurements.localisation import Localisation
from probes.measurements.selectivity import Selectivity
from probes.records.probe_spec import PROBES
from probes.records.row import Row


def with_found(result, measurement, rows):
    return result.with_evidence(evidence_record(result, measurement, rows))


def bare(*names, **more):
    """A result without evidence."""
    return make_result(*names, p_best=False, **more)


CONTROLS = [
    Row("selectivity", 0.25, 0, 0.23, 0.27),
    Row("selectivity", 0.65, 1),
    Row("accuracy", 0.9, 1),
    Row("accuracy", 0.25, 1, axes={"draw": 1}),
    Row("types_seen", 0.876),
]
DRAWS = Row("control_sd", 0.0125, n=18)


def code_rows(bits, blocks=None, starts=(0,), uniform=8000.0):
    """The rows of codes by layer, None for that of the labels alone.

    Args:
        bits: by layer, with an interval or without.
        blocks: bits per label, by layer.
    """
    rows = []
    for layer, (value, *interval) in bits.items():
        axes = {} if layer is not None else {"baseline": "labels alone"}
        low, high = [uniform / x for x in reversed(interval)] or (None, None)
        rows.append(Row("codelength", value, layer, split="train", axes=axes))
        rows.append(Row("compression", uniform / value, layer, low, high, split="train", axes=axes))
        for start, each in zip(starts, (blocks or {}).get(layer, [value]), strict=True):
            place = {**axes, "examples": start}
            rows.append(Row("bits_per_label", each, layer, split="train", axes=place))
    return rows


CODES = code_rows(
    {0: (4000.0, 3800.0, 4200.0), 1: (2000 / 0.9, 1900 / 0.9, 2100 / 0.9), None: (6000.0,)}
)


def test_a_table_has_the_tasks_that_have_its_measurement():
    result = with_found(bare(scores=(0.5, 0.9)), "selectivity", CONTROLS)
    found = evidence_tables([result, bare("depth", (0.1, 0.2), metric="nspr")])
    assert list(found) == ["selectivity"]
    assert found["selectivity"][0].heads == ("layer", "pos (accuracy)")


def test_selectivity_with_half_intervals_and_the_spread_over_draws():
    given = bare(scores=(0.5, 0.7, 0.9))
    (table,) = evidence_tables([with_found(given, "selectivity", [*CONTROLS, DRAWS])])[
        "selectivity"
    ]
    assert table.texts == [
        ("0", "25.0 ± 2.0"),
        ("1", "65.0"),
        ("test examples with a type seen in train, %", "87.6"),
        ("SD over draws", "1.25"),
    ]
    (table,) = evidence_tables([with_found(given, "selectivity", CONTROLS)])["selectivity"]
    assert table.texts[-1] == ("test examples with a type seen in train, %", "87.6")


def test_compression_is_that_of_the_uniform_code():
    result = with_found(bare(scores=(0.5, 0.9)), "description_length", CODES)
    table, _ = evidence_tables([result])["description_length"]
    assert table.title == (
        "description length · compression: length of the uniform code over that of the training "
        "labels"
    )
    # 8000 / 4000, between 8000 / 4200 and 8000 / 3800.
    assert table.texts == [
        ("0", "2.00 ± .10"),
        ("1", "3.60 ± .18"),
        ("labels alone", "1.33"),
    ]


LEARNT = code_rows(
    {0: (115.0,), 1: (60.0,), 2: (84.0,), None: (145.0,)},
    {0: (2.0, 1.0, 0.9), 1: (2.0, 0.5, 0.1), 2: (2.0, 0.8, 0.4), None: (2.0, 1.5, 1.2)},
    (0, 20, 50),
)
"""Blocks of 20, 30 and 50 examples of four classes."""


def test_learning_curves_are_bits_per_label_after_so_many_examples():
    result = with_found(bare(scores=(0.5, 0.9, 0.7)), "description_length", LEARNT)
    _, table = evidence_tables([result])["description_length"]
    assert table.title.startswith("description length · pos · learning curve: bits per label")
    assert table.heads == ("layer", "0", "20", "50")
    assert table.texts == [
        ("0", "2.00", "1.00", ".90"),
        ("1", "2.00", ".50", ".10"),
        ("2", "2.00", ".80", ".40"),
        ("labels alone", "2.00", "1.50", "1.20"),
    ]


def test_learning_curves_of_three_layers_and_the_labels_alone():
    result = with_found(bare(scores=(0.5, 0.9, 0.7)), "description_length", LEARNT)
    once = with_found(bare(), "description_length", CODES)
    _, found = DescriptionLength().charts({"m": result, "once": once})
    assert [(p.line, p.x, p.value) for p in found.models["m"]] == [
        ("best layer", 20, 0.5),
        ("best layer", 50, 0.1),
        ("lowest layer", 20, 1.0),
        ("lowest layer", 50, 0.9),
        ("highest layer", 20, 0.8),
        ("highest layer", 50, 0.4),
        ("labels alone", 20, 1.5),
        ("labels alone", 50, 1.2),
    ]
    assert found.missing == {"once": "too few training examples"}


def test_training_variance_by_layer_and_pooled():
    found = [
        # Deviations −.02, 0 and .02 from .5: √(.0008 / 2) = .02.
        Row("layer_training_sd", 0.02, 0, n=2),
        *(Row("accuracy", x, 0, axes={"sample": i}) for i, x in enumerate((0.48, 0.5, 0.52), 1)),
        Row("layer_training_sd", None, 2),
        *variance_rows({0: 0.01, 1: 0.02}, 0.02, 2),
    ]
    (table,) = evidence_tables(
        [with_found(bare(scores=(0.5, 0.6, 0.7)), "training_variance", found)]
    )["training_variance"]
    assert table.texts == [
        ("0", "2.00"),
        ("2", "–"),
        ("pooled", "2.00"),
        ("seeds alone", "–"),
        ("samples alone", "2.00"),
    ]


@pytest.mark.parametrize(("of_seeds", "alone"), [(0.03, 0.04), (0.06, 0.0)])
def test_variance_of_seeds_and_of_samples_alone_have_lines_of_their_own(of_seeds, alone):
    found = [
        Row("layer_training_sd", 0.05, 0, n=6),
        Row("training_sd", 0.05, n=6),
        Row("retraining_sd", of_seeds, n=3),
        Row("sampling_sd", alone),
    ]
    result = with_found(bare(scores=(0.5, 0.6)), "training_variance", found)
    (table,) = evidence_tables([result])["training_variance"]
    assert table.texts[-3:] == [
        ("pooled", "5.00"),
        ("seeds alone", f"{100 * of_seeds:.2f}"),
        ("samples alone", f"{100 * alone:.2f}"),
    ]


def test_mixes_and_the_estimates_from_them():
    found = [
        Row("mix_score", 0.5, 0, 0.48, 0.52),
        Row("mix_score", 0.51, 1),
        Row("total_gain", 0.01, None, -0.01, 0.03),
        Row("expected_layer", None, why="no gain"),
        Row("centre_of_gravity", 0.5, None, 0.25, 0.75),
        Row("kl", 0.125, why="one sample"),
        *(Row("mix_score", x, k, split="dev") for k, x in enumerate((0.5, 0.51))),
    ]
    (table,) = evidence_tables([with_found(bare(), "localisation", found)])["localisation"]
    assert table.texts == [
        ("0", "50.0 ± 2.0"),
        ("1", "51.0"),
        ("expected layer", "–"),
        ("centre of gravity", ".50 [.25, .75]"),
        ("KL from uniform, bits", ".12"),
    ]


def test_curves_have_the_same_numbers_and_say_why_there_are_none():
    full = make_full_result(scores=(0.5, 0.7))
    results = {
        "full": full,
        "scores": bare(scores=(0.5, 0.7)),
        "mlp": bare(scores=(0.5, 0.7), probe=PROBES["mlp"]),
        "part": bare(scores=(0.5, 0.7), n_layers=9),
    }
    (selectivity,) = Selectivity().charts(results)
    assert [p.value for p in selectivity.models["full"]] == pytest.approx([0.2, 0.4])
    assert selectivity.missing == dict.fromkeys(
        ("scores", "mlp", "part"), "there is no record of it"
    )
    compression, learning = DescriptionLength().charts(results)
    assert [p.value for p in compression.models["full"]] == pytest.approx([1.5, 2.1])
    assert compression.models["full"][0].interval == pytest.approx((300 / 220, 300 / 180))
    assert compression.levels == {"labels alone": pytest.approx(300 / 280)}
    why = {**selectivity.missing, "mlp": "only convex probes have an online code"}
    assert learning.missing == compression.missing == why
    (mix,) = Localisation().charts(results)
    assert [p[:2] for p in mix.models["full"]] == [(0, 0.5), (1, 0.7)]
    assert mix.missing == {
        "scores": "there is no record of it",
        "mlp": "only convex probes are fitted on mixes",
        "part": "not all layers were probed",
    }


def test_layers_are_marked_as_alike_only_where_training_variance_was_measured():
    scores = (0.5, 0.7, 0.69, 0.68)
    marked = make_result(scores=scores, p_best=[0.001, None, 0.049, 0.05])
    tied = [row.cells[1].tied for row in score_table([marked]).rows[:4]]
    assert tied == [False, False, False, True]
    plain = [row.cells[1] for row in score_table([bare(scores=scores)]).rows[:4]]
    assert [cell.tied for cell in plain] == [False] * 4
    assert [cell.best for cell in plain] == [False, True, False, False]
