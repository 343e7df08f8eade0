"""The reader of CorefUD's mentions, on brackets written by hand, drawn, and of GUM."""

import re
from collections import Counter

import pytest

from probes.common.errors import UserError
from probes.data.chunk_schemes import WordError
from probes.data.conllu_files import part_names, read_conllu, read_mentions
from probes.data.find import find_corpus
from probes.data.sentence import SPLITS

NAMES = part_names("eid-etype-head-other")


def read(*values, names=NAMES):
    """The mentions of a sentence with these values of `Entity=`; None is a word without."""
    marked = [((i, i + 1), value) for i, value in enumerate(values) if value]
    return read_mentions(marked, names)


def facts(mentions):
    return [(m.entity, m.type, m.span, m.part) for m in mentions]


def test_mentions_nest_cross_and_share_words():
    found = read("(e1-person-1(e2-place)", "(e3", "e1)", "e3)(e1-person(e2", "(e4)e2)e1)")
    assert facts(found) == [
        ("e1", "person", (0, 3), ""),
        ("e2", "place", (0, 1), ""),
        ("e3", "", (1, 4), ""),
        ("e1", "person", (3, 5), ""),
        ("e2", "", (3, 5), ""),
        ("e4", "", (4, 5), ""),
    ]
    assert found[0].attributes == {"eid": "e1", "etype": "person", "head": "1"}
    assert {m.unfit for m in found} == {""}


def test_further_mentions():
    # Of two open mentions of one entity, the inner closes first.
    found = read("(e1", "(e1", "e1)", "e1)")
    assert facts(found) == [("e1", "", (0, 4), ""), ("e1", "", (1, 3), "")]
    # The names of parts say which is which.
    (found,) = read("(person-7-new)", names=part_names("entity-GRP-infstat-identity"))
    assert (found.entity, found.type) == ("7", "person")
    assert found.attributes == {"entity": "person", "GRP": "7", "infstat": "new"}
    assert part_names("head-other") == ()
    # Parts of a discontinuous mention stay apart.
    found = read("(e1[1/2]-person", "e1[1/2])", None, "(e1[2/2]-person)")
    assert facts(found) == [("e1", "person", (0, 2), "1/2"), ("e1", "person", (3, 4), "2/2")]
    assert {m.unfit for m in found} == {"part of a discontinuous mention"}
    # A mention of an empty node has no words.
    marked = [((0, 1), "(e1"), ((1, 1), "(e2)"), ((2, 2), "(e3"), ((2, 3), "e3)e1)")]
    found = read_mentions(marked, NAMES)
    assert [m.span for m in found] == [(0, 3), (1, 1), (2, 3)]
    assert [m.unfit for m in found] == ["", "mention without words", ""]


@pytest.mark.parametrize(
    ("values", "word", "message"),
    [
        (["person"], 0, "Entity=person is not made of brackets"),
        (["()"], 0, "is not made of brackets"),
        (["(e1)", "(e2))"], 1, "is not made of brackets"),
        (["(e1", "e2)"], 1, "the mention e2 closes, but is not open"),
        (["(e1[1/2]", "e1)"], 1, "the mention e1 closes, but is not open"),
        (["(e1)", "(e2", "(e3)"], 1, "the mention e2 does not close in its sentence"),
        (["(e1-person-1-x-y)"], 0, "has 5 parts, but # global.Entity names 4"),
        (["(-person)"], 0, "names no entity"),
    ],
)
def test_malformed_brackets_are_refused_at_their_word(values, word, message):
    with pytest.raises(WordError, match=re.escape(message)) as error:
        read(*values)
    assert error.value.word == word


def test_mentions_without_entities_have_types():
    names = part_names("etype-identity")
    found = read_mentions([((0, 1), "(person"), ((1, 2), "(place-Rome)person)")], names)
    assert facts(found) == [("", "person", (0, 2), ""), ("", "place", (1, 2), "")]
    with pytest.raises(WordError, match="the mention place closes, but is not open"):
        read_mentions([((0, 1), "(person"), ((1, 2), "place)")], names)


HEADER = "# newdoc id = d\n# global.Entity = eid-etype\n"


def file_with(tmp_path, values, header=HEADER, ids=None):
    lines = []
    for number, value in zip(ids or map(str, range(1, len(values) + 1)), values, strict=True):
        head, misc = "_" if "." in number else "0", f"Entity={value}" if value else "_"
        lines.append("\t".join((number, "w", "w", "X", "X", "_", head, "_", "_", misc)))
    path = tmp_path / "x.conllu"
    path.write_text(header + "\n".join(lines) + "\n\n")
    return path


def test_mentions_of_files(tmp_path):
    (sentence,) = read_conllu(file_with(tmp_path, ["(1-person", "(2)1)"]), "en")
    assert facts(sentence.mentions) == [("1", "person", (0, 2), ""), ("2", "", (1, 2), "")]
    # Without a comment that says what it means, Entity= is something else.
    (other,) = read_conllu(file_with(tmp_path, ["B-PER", "I-PER"], header=""), "en")
    assert other.mentions == ()
    path = file_with(tmp_path, ["(1", "(2)", "1)"], ids=["1", "1.1", "2"])
    (sentence,) = read_conllu(path, "en")
    assert [m.span for m in sentence.mentions] == [(0, 2), (1, 1)]
    path = file_with(tmp_path, ["(1)", None, "(2"])
    with pytest.raises(UserError) as error:
        list(read_conllu(path, "en"))
    assert str(error.value) == (
        f"{path}, line 5: the mention 2 does not close in its sentence; fix the file."
    )


@pytest.fixture(scope="module")
def gum(real_data):
    return find_corpus("gum", data_dir=real_data).load()


@pytest.mark.real_data
def test_counts_of_gum(gum):
    of = {split: gum.splits[split] for split in SPLITS}
    # Of words and tags, those of the release's own statistics, `stats.xml`.
    assert [len(of[split]) for split in SPLITS] == [10_224, 1_575, 1_464]
    assert [sum(map(len, of[split])) for split in SPLITS] == [177_410, 28_119, 28_397]
    tags = Counter(tag for sentence in gum for tag in sentence.upos)
    counts = {"NOUN": 38_895, "VERB": 24_740, "PRON": 19_980, "X": 389}
    assert {tag: tags[tag] for tag in counts} == counts
    # Of mentions, the opening brackets that grep finds.
    assert [sum(len(s.mentions) for s in of[split]) for split in SPLITS] == [49_649, 7_897, 7_927]
    assert [len({s.document for s in of[split]}) for split in SPLITS] == [177, 30, 30]


def entity_values(mentions, n_words):
    """Values of `Entity=` in CorefUD's order, by word; None where no mention begins or ends.

    Closing brackets come before opening ones, inner mentions closing first. A mention of one word
    is opened like the others, or comes before what closes if nothing else opens.
    """
    found = []
    for word in range(n_words):
        opening = [m for m in mentions if m.span[0] == word]
        ends = [m for m in mentions if m.span[0] < word < m.span[1] == word + 1]
        closing = "".join(f"{closed_as(m)})" for m in reversed(ends))
        opened = "".join(
            "(" + "-".join(m.attributes.values()) + ")" * (m.span[1] == word + 1) for m in opening
        )
        single_only = all(m.span[1] == word + 1 for m in opening)
        found.append((opened + closing if single_only else closing + opened) or None)
    return found


def closed_as(mention):
    return f"{mention.entity}[{mention.part}]" if mention.part else mention.entity


@pytest.mark.real_data
def test_gum_is_written_again_as_it_was(gum, real_data):
    (path,) = real_data.rglob("en_gum-ud-dev.conllu")
    lines = path.read_text(encoding="utf-8").splitlines()
    misc = [line.rsplit("\t", 1)[1] for line in lines if re.match(r"\d+\t", line)]
    given_values = [(re.findall(r"(?:^|\|)Entity=([^|]+)", x) or [None])[0] for x in misc]
    written = [v for s in gum.splits["dev"] for v in entity_values(s.mentions, len(s))]
    assert written == given_values
