"""Groups and labels of records, those that are left out, and random twins."""

from pathlib import Path

import pytest
from corpus_records import corpus_record, geometry
from results_by_hand import changed, make_result

from probes.boards.comparable import twins_of
from probes.boards.shown_together import all_groups, corpus_groups, corpus_records_of, model_labels

FLAT = [0.3] * 3


def paths(*records):
    return {Path(f"{i}.json"): record for i, record in enumerate(records)}


def grouped(*records):
    found = paths(*records)
    groups, left_out = corpus_groups(found, model_labels(found))
    return {each.title: list(each.records) for each in groups}, left_out


def test_models_of_one_corpus_stand_together_each_before_its_twin():
    twin = geometry(FLAT, model="random:b", digest="r")
    others = geometry(FLAT, model="a", digest="a"), geometry(FLAT, model="b")
    assert grouped(twin, *others) == ({"c 1": ["a", "b", "random:b"]}, [])


def test_titles_say_what_sets_groups_apart():
    one = geometry(FLAT, model="a")
    other = changed(geometry(FLAT, model="b", digest="b"), "corpus", name="d", fingerprint="d" * 64)
    seed = one.model_copy(update={"settings": {**one.settings, "seed": 3}})
    first = geometry(FLAT, model="a").model_copy(update={"pooling": "first"})
    found, _ = grouped(one, other, seed, first)
    assert list(found) == [
        "c 1 · pooling first · --geometry-seed 0",
        "c 1 · pooling mean · --geometry-seed 0",
        "c 1 · pooling mean · --geometry-seed 3",
        "d 1",
    ]


def test_a_second_record_of_a_model_is_left_out_and_named():
    found = grouped(geometry(FLAT), geometry(FLAT))
    assert found == ({"c 1": ["m"]}, ["1.json: a second record of m"])


def test_pairs_with_different_bases_are_apart():
    one = corpus_record("model_similarity", [], 2, model="b", digest="b")
    bases = [one.model.model_copy(update={"name": name, "digest": name}) for name in ("x", "y")]
    found, _ = grouped(*(one.model_copy(update={"base": base}) for base in bases))
    assert found == {"c 1 · base x": ["b"], "c 1 · base y": ["b"]}


def test_models_have_one_label_in_scores_and_other_records():
    """Two models of one name are told apart, although only one of them has scores."""
    scores = paths(make_result("pos", model="m"))
    others = {Path("g.json"): geometry(FLAT, digest="0123456789")}
    (found,), _ = all_groups(scores, others)
    assert found.models == ["m (m, float32)"]


def test_records_are_of_measurements_that_are_known(capsys):
    raw = geometry(FLAT)
    strange = raw.model_copy(update={"measurement": "mine"})
    found = corpus_records_of(paths(raw, strange, make_result("pos")))
    assert found == {Path("0.json"): raw}
    said = " ".join(capsys.readouterr().err.split())
    assert "left out 1 record of mine: --include the file that it comes from" in said


def model(name, configuration="", random_seed=None, **more):
    found = make_result(model=name, random_seed=random_seed, **more)
    digest = f"{name} {configuration}"
    return changed(found, "model", configuration=configuration, digest=digest)


def names(record, *others):
    return [x.model.name for x in twins_of(record, dict(enumerate(others))).values()]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (model("a", "c"), ["random:a", "random-1:b"]),
        # A folder of the same name as another.
        (model("a", "d"), ["random:old"]),
        (model("b", "c"), ["random:a", "random-1:b"]),
        # Records of earlier versions say nothing of their configuration.
        (model("a"), ["random:a"]),
        (model("old", "c"), ["random:a", "random-1:b"]),
        # Revisions share the twin of the first, though its configuration may be another one.
        (model("b@v2", "e"), ["random-1:b"]),
        (model("z"), []),
        (model("random-2:a", "c", 2), []),
    ],
)
def test_a_twin_has_the_configuration_of_its_models_or_their_name(of, expected):
    others = [model("random:a", "c", 0), model("random-1:b", "c", 1), model("random:old", "d", 0)]
    assert names(of, of, *others, model("z", "c")) == expected


def test_twins_of_earlier_versions_stand_beside_those_of_the_same_configuration():
    others = [model("random:a", "c", 0), model("random:a", "", 0), model("random:a", "d", 0)]
    of = model("a", "c")
    assert list(twins_of(of, dict(enumerate(others)))) == [0, 1]
    assert list(twins_of(of, {2: others[2]})) == [2]


def test_a_twin_ran_in_the_same_type_on_the_same_text():
    half = model("random:a", "c", 0, dtype="bfloat16")
    assert names(model("a", "c"), half) == []
    assert names(model("a", "c", dtype="bfloat16"), half) == ["random:a"]
