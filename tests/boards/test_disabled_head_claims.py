"""Claims about disabled heads in each of their outcomes, on records made for them."""

import pytest
from corpus_records import corpus_record
from heads_by_hand import attention, choice

from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_rows import ModelRows
from probes.records.row import Row

BY_NAME = {claim.name: claim for claim in CLAIMS}


def drop(value, half=0.001, p=None, task="pos", **axes):
    ends = (None, None) if half is None else (value - half, value + half)
    layer = axes.pop("layer", None)
    axes = {"at": 2, "predicts": task, **axes}
    return Row("ablation_drop", value, layer, *ends, n=500, p=p, axes=axes)


def head(number, value, layer=1, **more):
    return drop(value, disabled="head", head=number, layer=layer, **more)


def pruned(share, value, by="importance", **more):
    return drop(value, disabled="heads", by=by, pruned=share, **more)


def on(name, *rows, beside=()):
    """The outcome on a record of these rows."""
    return BY_NAME[name].on(ModelRows([corpus_record("ablation", rows, 2), *beside]))


@pytest.mark.parametrize(
    ("rows", "expected", "p"),
    [
        ([head(1, 0.01), head(2, -0.01, p=0.01), head(1, 0.01, task="srl")], "supported", 0.02),
        ([head(1, 0.01), head(2, -0.01, p=0.04), head(1, 0.01, task="srl")], "undecided", 0.08),
        ([head(1, 0.01, p=0.001), head(2, 0.02, p=0.001)], "contradicted", None),
        ([head(1, 0.01), head(2, 0.0, half=None)], "undecided", 1.0),
        # Below the last layer, or of a layer, nothing counts.
        ([head(1, 0.0005), head(2, -0.1, p=0.001)._replace(
            axes={"at": 1, "predicts": "pos", "disabled": "head", "head": 2})], "undecided", None),
    ],
)  # fmt: skip
def test_some_heads_hurt(rows, expected, p):
    found = on("some-heads-hurt", *rows)
    assert found.verdict == expected
    if p is not None:
        assert found.p == pytest.approx(p)


@pytest.mark.parametrize(
    ("cost", "expected"), [(0.002, "supported"), (0.0115, "undecided"), (0.03, "contradicted")]
)
def test_heads_of_core_relations(cost, expected):
    # The median head costs .001, so that the limit is .011.
    rows = [head(1, 0.001), head(2, cost), head(1, 0.0, layer=2), head(2, 0.001, layer=2)]
    beside = [attention([choice("nsubj", at=(1, 2)), choice("det", at=(1, 1))])]
    found = on("core-heads-unused", *rows, beside=beside)
    assert found.verdict == expected
    assert found.why.startswith(f"nsubj of pos, by head 1–2: {cost:.3f} [")
    assert found.why.endswith("limit 0.011")
    assert len(found.numbers) == 1


def test_heads_of_core_relations_need_attention():
    assert "--measurements attention" in on("core-heads-unused", head(1, 0.0)).why
    beside = [attention([choice("det")])]
    assert on("core-heads-unused", head(1, 0.0), beside=beside).verdict == "not tested"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.002, 0.005), "supported"),
        ((0.002, 0.0095), "undecided"),
        ((0.002, 0.02), "contradicted"),
    ],
)
def test_many_heads_can_be_pruned(values, expected):
    rows = [
        pruned(40, value, task=task) for task, value in zip(("pos", "srl"), values, strict=True)
    ]
    rows += [pruned(100, 0.6), pruned(100, 0.6, task="srl")]
    others = [pruned(40, 0.5, by="random"), pruned(50, 0.5), head(1, 0.5)]
    assert on("many-heads-prunable", *others, *rows).verdict == expected


def test_pruning_that_changes_no_prediction_costs_nothing():
    every = pruned(100, 0.6)
    assert on("many-heads-prunable", pruned(40, 0.0, half=None), every).verdict == "supported"
    assert on("many-heads-prunable", pruned(40, 0.5, half=None), every).verdict == "not tested"


def test_other_steps_cannot_be_tested():
    found = on("many-heads-prunable", pruned(50, 0.0))
    assert (found.verdict, found.why) == (
        "not tested",
        "no step of pruning is at 40 % of the heads",
    )


@pytest.mark.parametrize(
    ("few", "expected"), [(0.1, "supported"), (0.1998, "undecided"), (0.3, "contradicted")]
)
def test_a_fifth_of_the_heads(few, expected):
    found = on("few-heads-work", pruned(80, few), pruned(100, 0.4))
    assert found.verdict == expected
    assert f"pos: drop {few:.3f} [" in found.why
