"""Chosen heads beside those of a random twin, and tables of heads, on records made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from heads_by_hand import (
    SENTENCES,
    WORDS,
    arrays,
    attention,
    choice,
    chosen,
    drawn,
    numbers,
)
from scipy.stats import bootstrap, ttest_rel

from probes.__main__ import main
from probes.boards.chosen_heads import ChosenHeads, chosen_heads, twin_of
from probes.boards.heads import choice_tables, entropy_table, head_tables, pattern_tables
from probes.records.files import write_record
from probes.records.header import CorpusRecord

OWN, TWIN = {"model": "m"}, {"model": "random:m", "random_seed": 0}


def beyond(own, twin, *, names=("obj",), n_test=None, measures=("relation",)):
    """Differences of choices with these hits (choices, sentences)."""
    more = {} if n_test is None else {"n_test": n_test}
    choices = [choice(name, at=(1, place + 1), **more) for place, name in enumerate(names)]
    others = [choice(name, at=(2, place + 1)) for place, name in enumerate(names)]
    # The twin's choices stand in another order.
    of_twin = chosen(attention(others[::-1], **TWIN), twin[::-1])
    return chosen(attention(choices, **OWN), own, of_twin).beyond_twin(*measures)


def test_a_difference_from_the_twin_is_that_of_the_shares_with_a_bootstrap_interval():
    (own, twin) = drawn(0.6, 0.5)
    (found,) = beyond([own], [twin]).values()
    assert found.difference.value == pytest.approx((own.sum() - twin.sum()) / SENTENCES / WORDS)
    theirs = bootstrap(
        ((own - twin) / WORDS,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    np.testing.assert_allclose(found.difference.interval, theirs, atol=0.006)
    assert (found.twin.layer, found.twin.head) == (2, 1)


@pytest.mark.parametrize("shares", [(0.55, 0.5), (0.6, 0.5), (0.5, 0.5), (0.45, 0.55)])
def test_p_of_one_difference_is_about_that_of_a_paired_t_test(shares):
    own, twin = drawn(*shares)
    (found,) = beyond([own], [twin]).values()
    assert found.p == pytest.approx(ttest_rel(own, twin).pvalue, abs=0.03)


def test_p_is_corrected_for_all_choices_and_rare_ones_do_not_count():
    own, twin, *rest = drawn(0.65, 0.5, *[0.5] * 8)
    alone = beyond([own], [twin])[0].p
    names = ("obj", "a", "b", "c", "d")
    together = beyond([own, *rest[:4]], [twin, *rest[4:]], names=names)
    assert list(together) == [0, 1, 2, 3, 4]
    # Of five independent tests the least p-value is exceeded with probability 1 − (1 − p)⁵.
    assert alone == pytest.approx(ttest_rel(own, twin).pvalue, abs=0.01)
    assert together[0].p == pytest.approx(1 - (1 - alone) ** 5, abs=0.03)
    rare = beyond([own], [twin], n_test=99)
    assert (rare[0].p, rare[0].difference) == (None, beyond([own], [twin])[0].difference)


def test_only_choices_of_the_named_measures_are_compared():
    choices = [choice("obj"), choice("", measure="uas"), choice("", measure="uuas")]
    hits = drawn(0.5, 0.6, 0.7)
    heads = chosen(attention(choices), hits, chosen(attention(choices, **TWIN), hits))
    assert list(heads.beyond_twin("uas", "uuas")) == [1, 2]
    assert heads.beyond_twin("role") == {}
    assert replace(heads, twin=None).beyond_twin("uas") == {}
    assert [x.difference.value for x in heads.beyond_twin("uas", "uuas").values()] == [0, 0]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"random_seed": 3, "model": "random-3:m"}, True),
        ({"model": "random:other"}, False),
        ({"model": "m", "random_seed": None}, False),
        ({"settings": {"segments": "two"}}, False),
        ({"measurement_version": 99}, False),
        ({"dtype": "float16"}, False),
        ({"layers": (1,)}, False),
        ({"splits": {}}, False),
    ],
)
def test_what_is_a_random_twin(tmp_path, change, found):
    own, other = attention(**OWN), attention(**{**TWIN, **change})
    records = {tmp_path / "m": own, tmp_path / "o": other}
    assert twin_of(own, records) == (tmp_path / "o" if found else None)
    assert twin_of(other, records) is None


def test_the_twin_is_of_the_same_text_and_has_the_first_seed(tmp_path):
    own, first = attention(**OWN), attention(**TWIN)
    second = attention(model="random-1:m", random_seed=1)
    text = CorpusRecord(**{**dict(own.corpus), "fingerprint": "a" * 64})
    elsewhere = first.model_copy(update={"corpus": text})
    assert twin_of(own, {tmp_path / "1": second, tmp_path / "0": first}) == tmp_path / "0"
    assert twin_of(own, {tmp_path / "1": second, tmp_path / "0": elsewhere}) == tmp_path / "1"


def test_entropy_of_every_head_in_percent():
    table = entropy_table(
        attention(of_heads=[numbers("entropy", [[0.881, 0.2], [0.5, 1.0]], (1.0, 1.0))])
    )
    assert table.heads == ("layer", "1", "2", "mean")
    assert table.texts == [("1", "88", "20", "54"), ("2", "50", "100", "75")]


def test_classes_of_every_head_and_their_counts():
    names = [["vertical", "diagonal"], ["vertical + diagonal", "vertical"]]
    signs, counts = pattern_tables(attention(patterns=names))
    assert signs.texts == [("1", "V", "D"), ("2", "VD", "V")]
    assert counts.texts == [
        ("1", "1", "1", "–", "–", "–"),
        ("2", "1", "–", "1", "–", "–"),
        ("all", "2", "1", "1", "–", "–"),
    ]


def heads_with_twin(n_rare=60):
    own = [
        choice("obj", at=(3, 1), test=0.7, n_test=200),
        choice("det", at=(3, 2), test=0.31, n_test=300, p=0.4, half=0.1),
        choice("list", at=(2, 1), test=0.2, n_test=n_rare, p=None, half=None),
    ]
    other = [choice("obj", at=(1, 2), test=0.1), choice("det", at=(2, 2), test=0.4)]
    other.append(choice("list", at=(4, 4), test=0.2))
    flat = np.ones(SENTENCES)
    twin = chosen(attention(other, **TWIN), [flat * 0, flat * 2, flat])
    return chosen(attention(own, rare={"fixed": 7}, **OWN), [flat * 3, flat, flat], twin)


def test_choices_by_frequency_beside_the_twin():
    (table,) = choice_tables(heads_with_twin())
    assert table.title == "m · c 1 · relations · test, %"
    assert table.texts == [
        ("det", "300", "3–2", "to head", "31.0 ± 1.0", "30.0 (-2)", "+1.0 ± 10.0", ".400",
         "2–2", "40.0 ± 1.0", "−20.0 ± 0.0", "<.001"),
        ("obj", "200", "3–1", "to head", "70.0 ± 1.0", "30.0 (-2)", "+40.0 ± 5.0", ".001",
         "1–2", "10.0 ± 1.0", "+60.0 ± 0.0", "<.001"),
    ]  # fmt: skip
    assert [row.cells[4].best for row in table.rows] == [False, True]
    assert table.notes[-2:] == (
        "1 rarer ones are listed with --all.",
        "Too rare to be scored, with words in test: fixed 7.",
    )


def test_rare_choices_are_listed_on_demand_without_p():
    (table,) = choice_tables(heads_with_twin(), all_choices=True)
    assert [row[0] for row in table.texts] == ["det", "obj", "list"]
    assert table.texts[-1][6:] == ("−10.0", "–", "4–4", "20.0 ± 1.0", "+0.0 ± 0.0", "–")


def test_without_a_twin_a_note_says_how_to_get_one():
    (table,) = choice_tables(replace(heads_with_twin(), twin=None))
    assert table.heads[-1] == "p"
    assert table.notes[1] == (
        "There is no random twin of the same texts and layers: run random:m too."
    )


def put(folder, record, hits, key):
    """Write a record with its arrays into the folder of its model and corpus."""
    model = record.model.name.replace(":", "-")
    path = folder / model / record.corpus.name / f"attention-{key * 8}.json"
    write_record(path, record.model_copy(update={"key": key * 64}), arrays(hits))
    return path


@pytest.fixture
def folder(tmp_path):
    """A model, its random twin, and a model read in pairs of sentences."""
    entropy = [numbers("entropy", [[0.5, 0.25]] * 2, (1.0, 1.0))]
    put(tmp_path, attention([choice("obj")], entropy, **OWN), drawn(0.9), "1")
    put(tmp_path, attention([choice("obj", at=(2, 2))], entropy, **TWIN), drawn(0.1), "2")
    put(tmp_path, attention((), entropy, model="pairs", segments="two"), drawn(0.5), "3")
    return tmp_path


def printed(capsys, *arguments):
    assert main(["heads", *map(str, arguments), "--format", "md"]) == 0
    found = capsys.readouterr()
    return [x for x in found.out.splitlines() if x.startswith(("#", "|"))], found.err


def test_the_command_finds_the_twin_in_the_folder_beside(folder, capsys):
    named, _ = printed(capsys, folder / "m" / "c")
    everything, said = printed(capsys, folder)
    assert everything == named
    assert named[0] == "### m · c 1 · relations · test, %"
    # drawn(.9) and drawn(.1) have 177 and 22 of 200 words right.
    own, twin = drawn(0.9)[0].sum(), drawn(0.1)[0].sum()
    assert f"| +{(own - twin) / 2:.1f} ± " in named[-1]
    assert "| 2–2 |" in named[-1]
    assert "left out" in said
    assert "it has no relations, roles or trees" in said


def test_a_twin_alone_has_a_table(folder, capsys):
    found, _ = printed(capsys, folder / "random-m")
    assert found[0] == "### random:m · c 1 · relations · test, %"
    assert "twin" not in found[1]


def test_all_heads_of_all_records(folder, capsys):
    found, _ = printed(capsys, folder, "--by", "entropy")
    assert [x for x in found if x.startswith("#")] == [
        "### m · c 1 · entropy, %",
        "### random:m · c 1 · entropy, %",
        "### pairs · c 1 · pairs of sentences · entropy, %",
    ]
    assert found.count("| 1 | 50 | 25 | 38 |") == 3
    found, _ = printed(capsys, folder / "m", "--by", "pattern")
    assert "| 2 | H | H |" in found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pairs"], "pairs: no heads were chosen"),
        (["nothing"], "nothing: there is no such folder"),
        (["m", "--by", "head"], "--by head: give entropy, pattern or relation."),
    ],
)
def test_what_cannot_be_shown(folder, capsys, arguments, said):
    place, *more = arguments
    assert main(["heads", str(folder / place), *more]) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error: ")]
    assert said in line


def test_other_records_alone_are_no_records_of_attention(tmp_path, capsys):
    from corpus_records import geometry, store_record

    store_record(tmp_path, geometry([0.3] * 3))
    assert main(["heads", str(tmp_path)]) == 2
    assert "measure it with --measurements attention" in capsys.readouterr().err


def test_a_record_whose_arrays_are_gone_is_named_and_left_out(folder, capsys):
    (path,) = (folder / "m" / "c").glob("*.json")
    path.with_suffix(".npz").unlink()
    assert head_tables("relation", {path: attention([choice("obj")], **OWN)}) == []
    said = capsys.readouterr().err
    assert said.startswith(f"not tested: {path.with_suffix('.npz')}: not readable")


def test_chosen_heads_are_read_with_their_twin(folder):
    (own,), (twin,) = ((folder / x / "c").glob("*.json") for x in ("m", "random-m"))
    records = {own: attention([choice("obj")], **OWN), twin: attention([choice("obj")], **TWIN)}
    found = chosen_heads(own, records)
    assert isinstance(found.twin, ChosenHeads)
    np.testing.assert_array_equal(found.arrays["test_sums"], drawn(0.9))
    np.testing.assert_array_equal(found.twin.arrays["test_sums"], drawn(0.1))
    assert chosen_heads(twin, records).twin is None
    beside = chosen_heads(own, {own: records[own]}).twin
    assert beside.record.model.name == "random:m"
    np.testing.assert_array_equal(beside.arrays["test_sums"], drawn(0.1))
