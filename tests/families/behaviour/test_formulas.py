"""Formulas over surprisals, by hand and of SyntaxGym."""

from collections import Counter
from itertools import product

import pytest

from probes.data.find import find_corpus
from probes.families.behaviour.pairs import truth

AB = {"a": (1.0, 2.0, 4.0), "b": (3.0, 2.0, 0.5), "no-gap_1": (7.0,)}

FORMULAS = {
    "(1;%a%) < (1;%b%)": 1,
    "(1;%a%) > (1;%b%)": 0,
    "(2;%a%) < (2;%b%)": 0.5,
    "(2;%a%) > (2;%b%)": 0.5,
    "(*;%a%) > (*;%b%)": 1,  # 7 and 5.5
    "( * ; %no-gap_1% ) < 7.5": 1,
    "1 + 2 * 3 - 4 / 2": 5,
    "(1 + 2) * 3": 9,
    "[1 + 2] * [4 - 1]": 9,
    "8 - 3 - 2": 3,
    "8 / 4 / 2": 1,
    "1 + 1 > 1 & 2 > 3": 0,  # & binds weakest
    "1 > 2 | 2 > 1 & 2 > 1": 1,
    "1 > 2 & 1 > 2 | 2 > 1": 0,  # as 1 > 2 & (1 > 2 | 2 > 1)
    "[1 > 2 & 1 > 2] | 2 > 1": 1,
    "1 > 1 & 2 > 1": 0.5,
    "1 > 1 | 2 > 1": 1,
    "1 > 1 & 1 > 2": 0,
    "[(1;%a%) - (1;%b%)] + [[(3;%a%)] - (3;%b%)]>0": 1,  # −2 + 3.5
    "(3;%a%)-(3;%b%)>3.5": 0.5,
    "(1;%c%) < 1": r"there is no \(1;%c%\)",
    "(4;%a%) < 1": r"there is no \(4;%a%\)",
    "(0;%a%) < 1": r"there is no \(0;%a%\)",
    "(1;%a%) <": "ends before a surprisal",
    "[(1;%a%) < 1": r"'\[' is never closed",
    "1 < 2 3": "has '3' after its end",
    "1 < 2]": r"has '\]' after its end",
    "1 = 2": "cannot be read at ' = 2'",
    "1 < x": "cannot be read at ' x'",
    "": "ends before a surprisal",
}
"""Values of formulas, or the message where a formula is wrong."""


@pytest.mark.parametrize(("formula", "expected"), FORMULAS.items())
def test_formulas_by_hand(formula, expected):
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            truth(formula, AB)
    else:
        assert truth(formula, AB) == truth(f" [ {formula} ] ", AB) == expected


def test_a_suite_of_syntaxgym_by_hand():
    """Three comparisons, the last of differences."""
    mvrr = (
        "[(5;%reduced_ambig%) > (5;%unreduced_ambig%)] & [(5;%reduced_ambig%) > "
        "(5;%reduced_unambig%)] & [[(5;%reduced_ambig%) - (5;%unreduced_ambig%)] > "
        "[(5;%reduced_unambig%) - (5;%unreduced_unambig%)]]"
    )
    names = "reduced_ambig", "unreduced_ambig", "reduced_unambig", "unreduced_unambig"
    for a, b, c, d in product((1.0, 2.0, 4.0), repeat=4):
        regions = {n: (9, 9, 9, 9, x, 9) for n, x in zip(names, (a, b, c, d), strict=True)}
        parts = [(a, b), (a, c), (a - b, c - d)]
        assert truth(mvrr, regions) == min(0.5 if x == y else float(x > y) for x, y in parts)


@pytest.mark.real_data
def test_syntaxgym_itself(real_data, tmp_path):
    source = find_corpus("syntaxgym", data_dir=real_data, cache_dir=tmp_path, offline=True)
    corpus = source.load()
    circuits = {item.paradigm: item.phenomenon for item in corpus.items}
    assert len(circuits) == 34
    assert Counter(circuits.values()) == {
        "Agreement": 3,
        "Licensing": 10,
        "Garden-path effects": 7,
        "Gross syntactic state": 4,
        "Center embedding": 2,
        "Long-distance dependencies": 8,
    }
    # All formulas can be read, and none holds where all surprisals are equal.
    for item in corpus.items:
        assert item.predictions
        even = {condition: [1.0] * len(texts) for condition, texts in item.texts.items()}
        assert {truth(formula, even) for formula in item.predictions} <= {0.0, 0.5}
