"""Which records are of a model's random twins."""

import pytest
from results_by_hand import changed, make_result

from probes.boards.comparable import twins_of
from probes.records.record_files import content_of


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


def test_a_record_of_an_earlier_version_has_the_same_content():
    assert content_of(model("a", "c")) != content_of(model("a"))
    one = model("a", "c")
    assert content_of(one) == content_of(changed(one, "model", configuration=""))
