"""How records of measurements of a corpus are grouped, labelled and left out."""

from pathlib import Path

from corpus_records import corpus_record, geometry
from results_by_hand import changed, make_result

from probes.boards.groups import corpus_groups, group, model_labels, of_corpora

FLAT = [0.3] * 3


def paths(*records):
    return {Path(f"{i}.json"): record for i, record in enumerate(records)}


def grouped(*records):
    found = paths(*records)
    groups, left_out = corpus_groups(found, model_labels(found))
    return {each.title: list(each.records) for each in groups}, left_out


def test_models_of_one_corpus_stand_together_each_before_its_twin():
    twin = geometry(FLAT, model="random:b", digest="r")
    found, left_out = grouped(
        twin, geometry(FLAT, model="a", digest="a"), geometry(FLAT, model="b")
    )
    assert (found, left_out) == ({"c 1": ["a", "b", "random:b"]}, [])


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
    assert grouped(geometry(FLAT), geometry(FLAT)) == (
        {"c 1": ["m"]},
        ["1.json: a second record of m"],
    )


def test_pairs_with_different_bases_are_apart():
    one = corpus_record("model_similarity", [], 2, model="b", digest="b")
    bases = [one.model.model_copy(update={"name": name, "digest": name}) for name in ("x", "y")]
    found, _ = grouped(*(one.model_copy(update={"base": base}) for base in bases))
    assert found == {"c 1 · base x": ["b"], "c 1 · base y": ["b"]}


def test_models_have_one_label_in_scores_and_other_records():
    """Two models of one name are told apart, although only one of them has scores."""
    scores = paths(make_result("pos", model="m"))
    others = {Path("g.json"): geometry(FLAT, digest="0123456789")}
    (found,), _ = group(scores, others)
    assert found.models == ["m (m, float32)"]


def test_records_are_of_measurements_that_are_known(capsys):
    raw = geometry(FLAT)
    strange = raw.model_copy(update={"measurement": "mine"})
    found = of_corpora(paths(raw, strange, make_result("pos")))
    assert found == {Path("0.json"): raw}
    said = " ".join(capsys.readouterr().err.split())
    assert "left out 1 record of mine: --include the file that it comes from" in said
