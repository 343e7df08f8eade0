"""Positions: names, what is refused, and letters by hand."""

import pytest

from probes.tasks.positions import Position, positions_in

TABLE = [
    # given, name, text, letter
    ("last:1", "last", "", None),
    ("last:12", "last:12", "", None),
    ("all", "all", "", None),
    ("all:user", "all:user", "", None),
    ("all:assistant", "all:assistant", "", None),
    ("all:last:1", "all:last:1", "", None),
    ("after:Answer:", 'after:"Answer:"', "Answer: no. Answer:  yes", 21),
    ('after:"a"', 'after:"a"', "a b a ", None),
    ("after:x", 'after:"x"', "a b a ", None),
    ("match:b+", 'match:"b+"', "abb bbb c", 6),
    (r"match:(b+)\s*c", r'match:"(b+)\s*c"', "abb c bb cc", 7),
    ("match:b(x)?", 'match:"b(x)?"', "abb", None),
    ("match: +", 'match:" +"', "   ", 2),
    (r"match:\n", r'match:"\n"', "model\n\n the\n b", 11),
    (r"match:b\s*", r'match:"b\s*"', "abb  \n c", 2),
    (r"match:\W+", r'match:"\W+"', "a b: \n c!", 8),
    ("match:x*", 'match:"x*"', "axxb", 2),
    ("match:(?<=b)", 'match:"(?<=b)"', "abb", None),
    ("match:$", 'match:"$"', "abb", None),
    ("match:x", 'match:"x"', "abb", None),
]


@pytest.mark.parametrize(("given", "name", "text", "letter"), TABLE)
def test_names_and_letters(given, name, text, letter):
    position = Position.parse(given)
    assert position.name == name
    assert Position.parse(name) == position
    if position.kind in ("after", "match"):
        span = position.span(text)
        at = span and (span[0] if position.kind == "after" else span[1] - 1)
        assert at == letter


def test_bags_are_told_from_single_tokens():
    """Whether it is a bag, its role, and the number of pieces to the end."""
    told = {
        "last": (False, "", 1),
        "last:12": (False, "", 12),
        "all:last:12": (True, "", 12),
        "all": (True, "", 0),
        "all:user": (True, "user", 0),
        "assistant": (False, "assistant", 0),
        "match:last:3": (False, "", 0),
        "mean": (False, "", 0),
    }
    for name, properties in told.items():
        position = Position.parse(name)
        assert (position.is_bag, position.role, position.from_end) == properties


NONE = ("cls", "last:0", "mean:", "x", "all:", "all:last", "all:last:0", "all:mean", "all:all")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        *((x, r"no such position( \(did you mean \w+(:\w+)?\?\))?; give mean") for x in NONE),
        ("asistant", r"asistant: no such position \(did you mean assistant\?\); give mean"),
        ("all:assistent", r"no such position \(did you mean all:assistant\?\); give mean"),
        ("after:", "no such position"),
        ("match:(", "is no regular expression"),
    ],
)
def test_others_are_refused(given, why):
    with pytest.raises(ValueError, match=why):
        Position.parse(given)


def test_commas_in_quotes_divide_nothing():
    assert positions_in('last, after:"a, b" ,match:x') == ("last", 'after:"a, b"', "match:x")
