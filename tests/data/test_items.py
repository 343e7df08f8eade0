"""Readers of what language models are asked, on tiny archives and tables made by hand."""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile
from collections import Counter
from dataclasses import fields, replace

import pytest
from table_files import write_rows

from probes.common.errors import UserError
from probes.data import item_suites
from probes.data.downloads import digest_of_members, read_card
from probes.data.find import find_corpus
from probes.data.items import WHOLE, Item, minimal_pair, sample_of_each
from probes.data.registered import corpora
from probes.data.sentence import SPLITS, Corpus
from probes.data.sources import Source


def source_of(**files):
    found = {role: (path,) for role, path in files.items()}
    return Source("made", "1", "MIT", found, {}, lambda source: None)


def registered_tar(monkeypatch, path, corpus, members):
    """An archive of these members, as if the card of the corpus had its digest."""
    with tarfile.open(path, "w:xz") as packed:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            packed.addfile(member, io.BytesIO(content.encode()))
    archive = read_card(corpus)["files"]["archive"].archive
    assert archive is not None
    found = {m[1]: x for name, x in members.items() if (m := re.fullmatch(archive.members, name))}
    digest = digest_of_members({name: content.encode() for name, content in found.items()})
    known = replace(archive, digest=digest)
    monkeypatch.setattr(item_suites, "read_members", lambda name, path: known.read(path))
    return path


# -- BLiMP --------------------------------------------------------------------------------


def blimp_line(uid, number, good, bad, term="binding"):
    row = {"sentence_good": good, "sentence_bad": bad, "UID": uid, "pairID": str(number)}
    return json.dumps({**row, "linguistics_term": term, "simple_LM_method": True})


def blimp(path, **files):
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in files.items():
            packed.writestr(f"data/{name}.jsonl", content)
        packed.writestr("__MACOSX/data/._x.jsonl", "no JSON")
        packed.writestr("readme.txt", "no JSON")
    return path


def test_blimp_is_read_in_alphabetical_order(tmp_path):
    second = blimp_line("npi", 0, "Even Ann ever ran.", "Even Ann ran ever.", "s-selection")
    first = [blimp_line("anaphor", i, f"He {i} saw himself.", f"He {i} saw it.") for i in (0, 1)]
    archive = blimp(tmp_path / "b.zip", npi=second + "\n", anaphor="\n".join(first) + "\n")
    corpus = item_suites.read_blimp(source_of(archive=archive))
    assert [item.id for item in corpus.items] == ["anaphor-0", "anaphor-1", "npi-0"]
    texts = {"good": ("He 1 saw himself.",), "bad": ("He 1 saw it.",)}
    compared = ("(*;%good%) < (*;%bad%)",)
    assert corpus.items[1] == Item("anaphor-1", "pairs", "anaphor", texts, "binding", compared)
    assert corpus.items[2].phenomenon == "argument_structure"
    assert corpus.layers == {"pairs"}
    assert [corpus.splits[split] for split in SPLITS] == [(), (), ()]
    assert list(corpus) == []


@pytest.mark.parametrize("content", ["{", '{"UID": "x"}'])
def test_a_damaged_blimp_is_named(content, tmp_path):
    archive = blimp(tmp_path / "b.zip", npi=content)
    with pytest.raises(UserError, match=r"b\.zip: cannot be read \(.*\); fetch it again"):
        item_suites.read_blimp(source_of(archive=archive))
    archive.write_bytes(b"PK no zip")
    with pytest.raises(UserError, match=r"b\.zip: cannot be read"):
        item_suites.read_blimp(source_of(archive=archive))


# -- CLAMS --------------------------------------------------------------------------------

CLAMS = {
    "fr_evalset/simple_agrmt.txt": "True\tl'auteur rit\nFalse\tl'auteur rient\n",
    "de_evalset/subj_rel.txt": (
        "True\tder Autor , der rennt , lacht\nFalse\tder Autor , der rennt , lachen\n"
        "True\tdie Autoren , die rennen , lachen\nFalse\tdie Autoren , die rennen , lacht\n"
    ),
}


def clams(tmp_path, monkeypatch, members, **more):
    packed = {f"clams-36b5/{name}": content for name, content in members.items()}
    packed["clams-36b5/README.md"] = "no pairs"
    archive = registered_tar(monkeypatch, tmp_path / "clams.tar.xz", "clams", packed)
    return item_suites.read_clams(source_of(archive=archive), **more)


def test_clams_by_language_and_construction(tmp_path, monkeypatch):
    corpus = clams(tmp_path, monkeypatch, CLAMS)
    assert [(x.id, x.paradigm, x.phenomenon) for x in corpus.items] == [
        ("de.subj_rel-0", "de.subj_rel", "de"),
        ("de.subj_rel-1", "de.subj_rel", "de"),
        ("fr.simple_agrmt-0", "fr.simple_agrmt", "fr"),
    ]
    good, bad = (f"die Autoren , die rennen , {verb}" for verb in ("lachen", "lacht"))
    assert corpus.items[1].texts == {"good": (good,), "bad": (bad,)}
    (french,) = clams(tmp_path, monkeypatch, CLAMS, languages=("fr",)).items
    assert french.texts["bad"] == ("l'auteur rient",)


def test_a_clams_file_without_pairs_is_named_with_its_line(tmp_path, monkeypatch):
    content = "True\ta\nFalse\tb\nFalse\tc\nTrue\td\n"
    with pytest.raises(UserError, match=r"clams\.tar\.xz: de_evalset/x\.txt, line 3: no pair"):
        clams(tmp_path, monkeypatch, {"de_evalset/x.txt": content})


# -- SyntaxGym ----------------------------------------------------------------------------


def suite(formulas, *items):
    """A suite; regions are given with their numbers, which order them."""

    def condition(name, regions):
        numbered = [{"region_number": n, "content": x} for n, x in regions]
        return {"condition_name": name, "regions": numbered}

    conditions = [[condition(*pair) for pair in item.items()] for item in items]
    numbered = [{"item_number": n, "conditions": x} for n, x in enumerate(conditions, start=1)]
    predictions = [{"type": "formula", "formula": formula} for formula in formulas]
    return json.dumps({"predictions": predictions, "items": numbered})


def test_syntaxgym_s_regions_are_written_with_a_space_before_each_but_the_first(
    tmp_path, monkeypatch
):
    gap = [(1, "I know"), (3, ""), (2, " who "), (4, "slept"), (10, "."), (9, "here  now")]
    first = [(1, ""), (2, "Slept"), (3, "well")]
    members = {
        "fgd_x.json": suite(["(2;%gap%) > 3", "(1;%gap%) = (1;%no%)"], {"gap": gap, "no": first}),
        "npi_x.json": suite(["(*;%a%) < (*;%b%)"], {"a": [(1, "x")], "b": [(1, "y")]}, {}),
    }
    packed = {f"sg-1/test_suites/json/{name}": content for name, content in members.items()}
    packed["sg-1/other/json/z.json"] = "{}"
    archive = registered_tar(monkeypatch, tmp_path / "s.tar.xz", "syntaxgym", packed)
    corpus = item_suites.read_suites(source_of(archive=archive))
    assert [(x.id, x.paradigm, x.phenomenon) for x in corpus.items] == [
        ("fgd_x-1", "fgd_x", "Long-distance dependencies"),
        ("npi_x-1", "npi_x", "Licensing"),
        ("npi_x-2", "npi_x", "Licensing"),
    ]
    assert corpus.items[0].texts == {
        "gap": ("I know", " who", "", " slept", " here now", " ."),
        "no": ("", "Slept", " well"),
    }
    # That two surprisals are equal cannot come true.
    assert corpus.items[0].predictions == ("(2;%gap%) > 3",)
    assert corpus.notes == {"predictions that surprisals are equal, left out": 1}


# -- Ettinger's diagnostics ---------------------------------------------------------------

TABLES = {
    "cprag": [
        ["item", "context_s1", "context_s2", "expected", "within_category", "between_category", "constraint"],
        ["0", "He lost. ", "She played ", "chess", "monopoly", "football", "H"],
        ["1", "He won.", "She played", "golf", "tennis", "chess", "L"],
    ],
    "role": [
        ["item", "context", "expected", "exp_cloze", "target", "tgt_cloze", "tgt_cloze(strict)"],
        ["61-b", "who the star had ", "avoided|met", "0.1", "interviewed", "0.06", "0"],
        ["61-a", "who the press had", "interviewed", "0.5", "interviewed", "0.5", "0.5"],
        ["7-a", "which bee the boy had", "seen", "0.5", "stung", "0", "0"],
        ["7-b", "which boy the bee had", "stung", "0.9", "stung", "0.9", "0.9"],
    ],
    "neg-simp": [
        ["item", "context_aff", "context_neg", "target_aff", "target_neg"],
        ["0", "An ant is (a|an)", "An ant is not (a|an)", "insect", "vegetable"],
    ],
    "neg-nat": [
        ["item", "context_aff", "context_neg", "target_aff", "target_neg", "licensing"],
        ["4", "Diving is very", "Diving isn't very", "safe", "dangerous", "Y"],
        ["5", "It is very", "It isn't really", "cold", "warm", "N"],
    ],
}  # fmt: skip


@pytest.fixture
def diagnostics(tmp_path):
    files = {}
    for role, rows in TABLES.items():
        files[role] = tmp_path / f"{role.upper()}.tsv"
        files[role].write_text("".join("\t".join(row) + "\n" for row in rows))
    items = item_suites.read_diagnostics(source_of(**files)).items
    assert len({item.id for item in items}) == len(items) == 2 + 4 + 2 + 2 + 4
    assert {(item.kind, item.target) for item in items} == {("contexts", 1)}
    return {item.id: item for item in items}


DIAGNOSTICS = [
    # Item, phenomenon, rest of the paradigm's name, texts before the completion and completions, answers, the good one.
    ("CPRAG-0", "CPRAG", ", high constraint", {"expected": "He lost. She played|chess", "within category": "He lost. She played|monopoly", "between category": "He lost. She played|football"}, ["expected"], "expected"),
    ("CPRAG-1", "CPRAG", ", low constraint", {"expected": "He won. She played|golf", "within category": "He won. She played|tennis", "between category": "He won. She played|chess"}, ["expected"], "expected"),
    # Roles are completed, and compared where people use the target more often, whichever comes first.
    ("ROLE-61-b", "ROLE", "", {"avoided": "who the star had|avoided", "met": "who the star had|met"}, ["avoided", "met"], ""),
    ("ROLE-61", "ROLE", "", {"usual": "who the press had|interviewed", "reversed": "who the star had|interviewed"}, [], "usual"),
    ("ROLE-7", "ROLE", "", {"usual": "which boy the bee had|stung", "reversed": "which bee the boy had|stung"}, [], "usual"),
    # Negation turns what is true, the article fits, and what a negated context determines is no completion.
    ("NEG-SIMP-0-affirmative", "NEG-SIMP, affirmative", "", {"true": "An ant is an|insect", "false": "An ant is a|vegetable"}, ["true"], "true"),
    ("NEG-SIMP-0-negative", "NEG-SIMP, negative", "", {"true": "An ant is not a|vegetable", "false": "An ant is not an|insect"}, [], "true"),
    ("NEG-NAT-4-negative", "NEG-NAT, negative", ", natural", {"true": "Diving isn't very|dangerous", "false": "Diving isn't very|safe"}, [], "true"),
    ("NEG-NAT-5-affirmative", "NEG-NAT, affirmative", ", less natural", {"true": "It is very|cold", "false": "It is very|warm"}, ["true"], "true"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "phenomenon", "paradigm", "texts", "answers", "good"), DIAGNOSTICS
)
def test_a_diagnostic_has_completions_of_contexts(
    name, phenomenon, paradigm, texts, answers, good, diagnostics
):
    item = diagnostics[name]
    parts = {label: text.split("|") for label, text in texts.items()}
    assert item.texts == {label: (x, f" {y}", ".") for label, (x, y) in parts.items()}
    assert (item.paradigm, item.phenomenon) == (f"{phenomenon}{paradigm}", phenomenon)
    rivals = tuple(x for x in texts if x != good) if good else ()
    assert (item.answers, item.good, item.rivals) == (tuple(answers), good, rivals)


def test_items_about_the_same_contexts_are_one_cluster(diagnostics):
    for names in (
        ("ROLE-61", "ROLE-61-a", "ROLE-61-b"),
        ("ROLE-7", "ROLE-7-a", "ROLE-7-b"),
        ("NEG-SIMP-0-affirmative", "NEG-SIMP-0-negative"),
    ):
        clusters = {diagnostics[name].cluster or diagnostics[name].id for name in names}
        assert len(clusters) == 1


# -- the user's own tables ----------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_pairs_are_read_from_csv_and_json_lines(ending, tmp_path):
    rows = [
        {"sentence_good": "Cats, dogs sleep.", "sentence_bad": " Cats, dogs sleeps. ", "UID": "number",
         "linguistics_term": "agreement", "group": "g1"},
        {"sentence_good": "A \"cat\" sleeps.", "sentence_bad": "A \"cat\" sleep.", "UID": "",
         "linguistics_term": "", "group": ""},
    ]  # fmt: skip
    source = find_corpus(write_rows(tmp_path / f"mine.{ending}", rows))
    assert source.items == "pairs"
    corpus = source.load()
    assert corpus.items == (
        # Spaces around a sentence would be scored.
        minimal_pair("mine-1", "number", "Cats, dogs sleep.", "Cats, dogs sleeps.", "agreement", "g1"),
        minimal_pair("mine-2", "mine", 'A "cat" sleeps.', 'A "cat" sleep.'),
    )  # fmt: skip
    assert corpus.items[0].predictions == (WHOLE,)
    assert corpus.notes == {"items": 2, "paradigms": 2}


def test_facts_are_written_from_their_templates(tmp_path):
    rows = [
        {"subject": "Oslo", "template": "[X] is in [Y] .", "object": " Norway", "relation": "in"},
        {"subject": " Oslo ", "template": "[Y] contains [X].", "object": "Norway"},
        {"subject": "T[Y]x", "template": "[X] is the ([Y])!", "object": "film"},
    ]
    source = find_corpus(write_rows(tmp_path / "f.jsonl", rows))
    assert source.items == "contexts"
    items = source.load().items
    assert [item.texts["object"] for item in items] == [
        ("Oslo is in", " Norway", " ."),
        ("", "Norway", " contains Oslo."),
        ("T[Y]x is the (", "film", ")!"),
    ]
    assert [item.paradigm for item in items] == ["in", "[Y] contains [X].", "[X] is the ([Y])!"]
    assert [item.cluster for item in items] == ["Oslo", "Oslo", "T[Y]x"]
    assert {(item.target, item.answers, item.good, item.rivals) for item in items} == {
        (1, ("object",), "", ())
    }


def test_files_of_one_name_have_items_of_their_own(tmp_path):
    paths = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        pairs = [(f"A {folder}.", f"B {folder}."), (f"C {folder}.", "D.")]
        rows = [{"sentence_good": good, "sentence_bad": bad} for good, bad in pairs]
        paths.append(write_rows(tmp_path / folder / "p.csv", rows))
    items = find_corpus(*paths).load().items
    assert [item.texts["good"][0] for item in items] == ["A one.", "C one.", "A two.", "C two."]
    assert len({item.id for item in items}) == 4  # else they would be resampled together
    assert {item.paradigm for item in items} == {"p"}


# -- what all corpora of items share ------------------------------------------------------


def test_a_limit_is_of_each_paradigm(tmp_path):
    lines = [f"{p} {i},x,{p}" for i in range(4) for p in "abc"]
    path = tmp_path / "p.csv"
    path.write_text("\n".join(["sentence_good,sentence_bad,UID", *lines, "d 0,x,d"]))
    whole, some = (find_corpus(str(path), limit=limit).load() for limit in (None, 2))
    assert Counter(item.paradigm for item in some.items) == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert [item for item in whole.items if item in some.items] == list(some.items)
    assert (len(whole.items), whole.limited, some.limited) == (13, False, True)
    assert some.notes == {"items": 7, "paradigms": 4}
    # The limit is part of what identifies a source.
    assert find_corpus(str(path), limit=2).digest != find_corpus(str(path)).digest
    assert not find_corpus(str(path), limit=4).load().limited
    assert sample_of_each(whole.items, 9) == list(whole.items)


def test_a_limit_draws_from_the_whole_paradigm():
    """CLAMS is sorted: its first thousand items of a paradigm have the same subject."""
    items = [minimal_pair(f"{i}", "p", f"good {i}", f"bad {i}") for i in range(4000)]
    few, more = sample_of_each(items, 100), sample_of_each(items, 400)
    assert (len(few), len(more)) == (100, 400)
    assert {x.id for x in few} < {x.id for x in more}
    places = [int(x.id) for x in more]
    assert places == sorted(places)
    # 100 are expected in each quarter, with a standard deviation of 8.
    assert all(70 < sum(q <= place // 1000 < q + 1 for place in places) < 130 for q in range(4))


def test_any_change_of_an_item_changes_the_fingerprint():
    item = Item("1", "pairs", "p", {"good": ("a", "b"), "bad": ("c",)}, "ph", (WHOLE,))
    changes = {"id": "2", "kind": "contexts", "paradigm": "q", "phenomenon": "", "predictions": ()}
    changes |= {"texts": {"good": ("ab",), "bad": ("c",)}, "target": 1, "answers": ("good",)}
    changes |= {"good": "good", "rivals": ("bad",), "cluster": "1"}
    assert set(changes) == {field.name for field in fields(Item)}
    others = [replace(item, **{name: value}) for name, value in changes.items()]
    empty = dict.fromkeys(SPLITS, ())
    fingerprints = {Corpus("c", "1", "", empty, items=(x,)).fingerprint for x in (item, *others)}
    assert len(fingerprints) == len(changes) + 1


# -- the real ones ------------------------------------------------------------------------


@pytest.mark.real_data
def test_blimp_itself(real_data, tmp_path):
    source = find_corpus("blimp", data_dir=real_data, cache_dir=tmp_path, offline=True)
    corpus = source.load()
    counts = Counter(item.paradigm for item in corpus.items)
    assert (len(counts), set(counts.values()), len(corpus.items)) == (67, {1000}, 67_000)
    phenomena = Counter({item.paradigm: item.phenomenon for item in corpus.items}.values())
    assert phenomena == {  # Warstadt et al. 2020, table 4
        "anaphor_agreement": 2, "argument_structure": 9, "binding": 7, "control_raising": 5,
        "determiner_noun_agreement": 8, "ellipsis": 2, "filler_gap_dependency": 7,
        "irregular_forms": 2, "island_effects": 8, "npi_licensing": 7, "quantifiers": 4,
        "subject_verb_agreement": 6,
    }  # fmt: skip
    texts = [(x.texts["good"][0], x.texts["bad"][0]) for x in corpus.items]
    assert sum(good == bad for good, bad in texts) == 7
    assert sum(len(good.split()) != len(bad.split()) for good, bad in texts) == 3945
    assert len(replace(source, limit=3).load().items) == 201


@pytest.mark.slow
@pytest.mark.real_data
def test_clams_and_the_diagnostics_themselves(real_data, tmp_path):
    places = {"data_dir": real_data, "cache_dir": tmp_path, "offline": True}
    whole = find_corpus("clams", **places).load()
    counts = Counter(item.phenomenon for item in whole.items)
    assert counts == {"en": 157_346, "fr": 49_360, "de": 47_820, "he": 40_820, "ru": 40_120}
    russian = find_corpus("clams-ru", **places).load()
    assert russian.items == tuple(item for item in whole.items if item.phenomenon == "ru")
    items = find_corpus("lm-diagnostics", **places).load().items
    answered = Counter(item.phenomenon for item in items if item.answers)
    compared = Counter(item.phenomenon for item in items if item.rivals)
    affirmative = {"NEG-136-SIMP, affirmative": 18, "NEG-136-NAT, affirmative": 16}
    negative = {"NEG-136-SIMP, negative": 18, "NEG-136-NAT, negative": 16}
    assert answered == {"CPRAG-102": 34, "ROLE-88": 88, **affirmative}
    assert compared == {"CPRAG-102": 34, "ROLE-88": 44, **affirmative, **negative}
    articles = {item.texts["true"][0].split()[-1] for item in items if "SIMP" in item.paradigm}
    assert articles == {"a", "an"}


def test_all_of_them_are_registered_as_items():
    kinds = {name: set(corpora.get(name).layers) for name in corpora}
    assert [name for name in kinds if kinds[name] == {"contexts"}] == ["lm-diagnostics"]
    languages = {f"clams-{x}" for x in ("en", "de", "fr", "he", "ru")}
    pairs = {name for name in kinds if kinds[name] == {"pairs"}}
    assert pairs == {"blimp", "clams", "syntaxgym", *languages}
