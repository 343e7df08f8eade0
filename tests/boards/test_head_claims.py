"""Claims about attention heads in each of their outcomes, on records made for them."""

import json

import pytest
from heads_by_hand import attention, choice, numbers

from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_rows import ModelRows

BY_NAME = {claim.name: claim for claim in CLAIMS}
OF_ABLATION = "core-heads-unused"
HEAD_CLAIMS = [x for x in CLAIMS if x.section == "5.1" and x.name != OF_ABLATION]


def on(name, record=None):
    """The outcome on a record of attention."""
    return BY_NAME[name].on(ModelRows([record] if record else []))


def with_masses(*vertical, diagonal=0.1, half=0.01):
    """A record of one layer whose heads have these vertical masses; uniform ones are 0."""
    n = len(vertical)
    found = [
        numbers("pattern", [vertical], (0.0,), feature="vertical", half=half),
        numbers("pattern", [[diagonal] * n], (0.0,), feature="diagonal", half=half),
    ]
    return attention((), found, n_layers=1, n_heads=n)


@pytest.mark.parametrize(
    ("vertical", "expected", "counts"),
    [
        # Of all bounds the last decides that fewer than half are, and the first that more are.
        ((0.9, 0.8, 0.3, 0.75), "supported", [[1, 1]] * 4),
        ((0.9, 0.8, 0.3, 0.65), "undecided", [[1, 1], [1, 1], [1, 1], [2, 2]]),
        ((0.9, 0.8, 0.3, 0.705), "undecided", [[1, 1], [1, 1], [1, 1], [1, 2]]),
        ((0.1, 0.2, 0.3, 0.7), "contradicted", [[3, 3], [3, 3], [3, 3], [3, 4]]),
        ((0.1, 0.2, 0.45, 0.8), "undecided", [[2, 2], [3, 3], [3, 3], [3, 3]]),
        ((0.1, 0.2, 0.45, 0.65), "undecided", [[2, 2], [3, 3], [3, 3], [4, 4]]),
    ],
)
def test_heterogeneous_heads_with_every_bound(vertical, expected, counts):
    found = on("heads-mostly-patterns", with_masses(*vertical))
    assert found.verdict == expected
    assert [(x["bound"], x["interval"]) for x in found.numbers] == [
        (bound, its) for bound, its in zip((0.4, 0.5, 0.6, 0.7), counts, strict=True)
    ]


def test_the_reason_has_the_count_with_every_bound():
    assert on("heads-mostly-patterns", with_masses(0.9, 0.8, 0.3, 0.705)).why == (
        "of 4 heads are heterogeneous: 1 [1, 1] with a bound of .4, 1 [1, 1] with a bound of .5, "
        "1 [1, 1] with a bound of .6, 1 [1, 2] with a bound of .7"
    )


def test_masses_are_beyond_uniform_and_classes_may_mix():
    # (.55 − .2) / .8 = .44 is below .5; with a diagonal of .3 in all, it makes a mixed pattern.
    vertical = numbers("pattern", [[0.55, 0.55]], (0.2,), feature="vertical")
    diagonal = numbers("pattern", [[0.1, 0.3]], (0.0,), feature="diagonal")
    record = attention((), [vertical, diagonal], n_layers=1)
    assert on("heads-mostly-patterns", record).numbers[1]["interval"] == [1, 1]


def with_special(shares, uniform=0.2, half=0.01):
    """A record of one layer whose heads attend so much to special tokens and punctuation."""
    found = [
        numbers("separators", [[0.1] * len(shares)], (0.1,), half=half),
        numbers("special", [shares], (uniform,), half=half),
    ]
    return attention((), found, n_layers=1, n_heads=len(shares))


@pytest.mark.parametrize(
    ("shares", "expected", "counts"),
    [
        ((0.4, 0.4, 0.1), "supported", [2, 2]),
        ((0.4, 0.205, 0.1), "undecided", [1, 2]),
        ((0.4, 0.1, 0.1), "contradicted", [1, 1]),
    ],
)
def test_attention_to_special_tokens(shares, expected, counts):
    found = on("special-tokens-attended", with_special(shares))
    assert (found.verdict, found.numbers[0]["interval"]) == (expected, counts)
    mean = sum(shares) / 3
    assert f"; mean {100 * mean:.1f} %, uniform 20.0 %" in found.why


def test_heads_that_specialise():
    found = on("heads-specialise", attention([choice("obj", test=0.7), choice("det", p=0.5)]))
    assert found.verdict == "supported"
    assert found.why == (
        "of 2 relations, 1 have a head above the baseline; obj by head 1–1: .700 (offset −2: .300)"
    )
    below = choice("obj", test=0.1), choice("det", test=0.2)
    assert on("heads-specialise", attention(below)).verdict == "contradicted"
    maybe = choice("obj", test=0.32, p=0.4), choice("det", test=0.2)
    assert on("heads-specialise", attention(maybe)).verdict == "undecided"


def test_what_is_rare_or_no_single_relation_says_nothing():
    every = choice("all"), choice("all but punct"), choice("list", p=None)
    found = on("heads-specialise", attention(every))
    assert found.why == "no relation is frequent enough to be tested"


def test_semantic_heads_are_those_of_roles():
    record = attention([choice("obj", test=0.1), choice("ARG0", measure="role", test=0.4)])
    assert on("semantic-heads", record).verdict == "supported"
    assert on("heads-specialise", record).verdict == "contradicted"


@pytest.mark.parametrize(
    ("test", "expected"), [(0.4, "supported"), (0.32, "undecided"), (0.2, "contradicted")]
)
def test_heads_of_objects(test, expected):
    found = on("object-heads", attention([choice("obj", test=test)]))
    assert found.verdict == expected
    sign = "+" if test > 0.3 else "−"
    assert f"difference {sign}{abs(test - 0.3):.3f} [" in found.why


def tree_heads(by_word=0.45, by_trees=0.43):
    """UAS of the best single heads, ± .01."""
    choices = [
        choice("obj", test=0.9),
        choice("all but punct", at=(2, 1), test=by_word),
        choice("", measure="uas", at=(2, 2), test=by_trees),
    ]
    return attention(choices)


@pytest.mark.parametrize(
    ("by_word", "by_trees", "expected"),
    [
        (0.45, 0.43, "supported"),
        (0.88, 0.3, "supported"),
        (0.895, 0.3, "undecided"),
        (0.3, 0.895, "undecided"),
        (0.3, 0.95, "contradicted"),
        (0.95, 0.95, "contradicted"),
    ],
)
def test_whether_one_head_has_the_trees(by_word, by_trees, expected):
    assert on("no-head-has-trees", tree_heads(by_word, by_trees)).verdict == expected


def test_the_reason_names_the_heads():
    assert on("no-head-has-trees", tree_heads()).why == (
        "UAS of head 2–1, by the word attended to most 0.450 [0.440, 0.460]; "
        "head 2–2, by trees 0.430 [0.420, 0.440]; limit: 0.9"
    )


def test_what_is_missing_is_named():
    for claim in HEAD_CLAIMS:
        found = on(claim.name)
        assert found.verdict == "not tested"
        assert found.why.startswith("there is no record of attention")
        part = on(claim.name, attention(n_layers=3, layers=(2,)))
        assert part.why == "attention was not measured at layer 1, 3"
    for name in ("heads-specialise", "semantic-heads"):
        none = "the corpus has no relations, roles or trees to choose heads by"
        assert on(name, attention()).why == none
    assert on("special-tokens-attended", attention()).why == (
        "the model has no special tokens after a text"
    )
    untagged = attention((), [numbers("separators", [[0.1] * 2] * 2, (0.1,))])
    assert on("special-tokens-attended", untagged).why == (
        "the corpus has no parts of speech, by which words are punctuation"
    )
    few = with_masses(0.5, half=None)
    assert on("heads-mostly-patterns", few).why == "vertical has no intervals"
    few = attention([choice("obj", half=None)])
    assert on("object-heads", few).why == "the difference has no interval"
    assert on("object-heads", attention()).why == "obj is no relation of the corpus, or is too rare"
    assert on("no-head-has-trees", attention()).why == "single heads have no interval"


def full():
    of_heads = [
        [row for row in record.rows if row.metric != "class"]
        for record in (with_masses(0.9, 0.8), with_special((0.6, 0.6)))
    ]
    choices = [
        choice("all but punct"),
        choice("obj", test=0.7),
        choice("ARG0", measure="role", test=0.7),
        choice("", measure="uas"),
    ]
    return attention(choices, of_heads, n_layers=1)


def test_every_claim_has_a_source_and_fits_in_json():
    assert len(HEAD_CLAIMS) == 6
    for claim in HEAD_CLAIMS:
        found = on(claim.name, full())
        assert found.verdict == "supported", found.why
        assert claim.differs
        assert claim.source.startswith("Primer 5.1; ")
        json.dumps(found, allow_nan=False)
