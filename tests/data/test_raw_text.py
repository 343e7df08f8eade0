"""Raw text through a spaCy pipeline that the tests train themselves."""

import json
import shutil

import pytest
import spacy
from spacy.training import Example
from tiny_runs import run

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sources import OTHER_TREES

TEXT = """\
The cat sees a dog. A bird sings.

She reads
the book.

   The dog  sleeps .
"""
TRAIN = [
    ("The cat sees a dog .", "DET NOUN VERB DET NOUN PUNCT", [1, 2, 2, 4, 2, 2],
     ["det", "nsubj", "ROOT", "det", "dobj", "punct"]),
    ("A bird sings .", "DET NOUN VERB PUNCT", [1, 2, 2, 2], ["det", "nsubj", "ROOT", "punct"]),
    ("She reads the book .", "PRON VERB DET NOUN PUNCT", [1, 1, 3, 1, 1],
     ["nsubj", "ROOT", "det", "dobj", "punct"]),
    ("The dog  sleeps .", "DET NOUN SPACE VERB PUNCT", [1, 3, 1, 3, 3],
     ["det", "nsubj", "dep", "ROOT", "punct"]),
    ("The dog sleeps .", "DET NOUN VERB PUNCT", [1, 2, 2, 2], ["det", "nsubj", "ROOT", "punct"]),
    # The parser learns where sentences end from two in one text.
    ("The dog sleeps . A bird sings .", "DET NOUN VERB PUNCT DET NOUN VERB PUNCT",
     [1, 2, 2, 2, 5, 6, 6, 6], ["det", "nsubj", "ROOT", "punct"] * 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """A folder with a tagger of universal tags and a parser, trained until they fit."""
    nlp = spacy.blank("en")
    nlp.add_pipe("morphologizer")
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    examples = []
    for text, tags, heads, deps in TRAIN:
        doc = nlp.make_doc(text)
        examples.append(Example.from_dict(doc, {"pos": tags.split(), "heads": heads, "deps": deps}))
    spacy.util.fix_random_seed(1)
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    folder = tmp_path_factory.mktemp("pipelines") / "tiny"
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def read(path, pipeline, **asked):
    return find_corpus(str(path), annotate=str(pipeline), **asked)


def test_the_pipeline_s_words_tags_heads_and_noun_chunks(notes, pipeline):
    corpus = read(notes, pipeline).load()
    first, second, third, last = corpus
    assert [len(part) for part in corpus.splits.values()] == [2, 1, 1]  # paragraphs stay whole
    assert first.words == ("The", "cat", "sees", "a", "dog", ".")
    assert first.upos == ("DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT")
    assert first.heads == (1, 2, -1, 4, 2, 2)
    assert first.chunks == ("B-NP", "I-NP", "O", "B-NP", "I-NP", "O")
    assert first.language == "en"
    assert second.words == ("A", "bird", "sings", ".")
    # A line break within a paragraph is a space; whitespace is no word.
    assert third.words == ("She", "reads", "the", "book", ".")
    assert last.words == ("The", "dog", "sleeps", ".")
    assert corpus.notes["paragraphs"] == 3
    assert corpus.notes["whitespace tokens left out"] == 1
    assert not first.deprels


@pytest.mark.parametrize(
    ("labels", "version", "told"),
    [
        (["ROOT", "det", "dobj", "nsubj"], "annotated by tiny, trees not UD", True),
        (["ROOT", "det", "obj", "nsubj:pass"], "annotated by tiny", False),
        (None, "annotated by tiny", True),  # nothing says which relations it knows
    ],
)
def test_trees_of_another_scheme_than_ud_are_called_so(
    notes, pipeline, tmp_path, labels, version, told
):
    folder = tmp_path / "tiny"
    shutil.copytree(pipeline, folder)
    meta = json.loads((folder / "meta.json").read_text())
    meta["labels"] = {"parser": labels} if labels else {}
    (folder / "meta.json").write_text(json.dumps(meta))
    corpus = read(notes, folder).load()
    assert corpus.version == version
    assert corpus.notes.get(OTHER_TREES) == (4 if told else None)


def test_a_pipeline_may_be_the_folder_of_its_package(notes, pipeline, tmp_path):
    package = tmp_path / "tiny"
    shutil.copytree(pipeline, package / "tiny-3.8.0")
    (package / "__init__.py").touch()
    corpus = read(notes, package).load()
    assert corpus.version == "annotated by tiny-3.8.0, trees not UD"
    assert len(list(corpus)) == 4


def test_a_file_without_blank_lines_has_a_paragraph_a_line(tmp_path, pipeline):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbfThe dog sleeps .\r\nA bird sings .\r\nShe reads the book .\r\n")
    corpus = read(path, pipeline).load()
    assert corpus.notes["paragraphs"] == 3
    assert [s.words[0] for s in corpus] == ["The", "A", "She"]
    assert corpus.notes["test sentences cut from all, by document"] == 1


def test_a_run_on_raw_text_is_silver(notes, pipeline, tiny_bert, tmp_path, capsys):
    notes.write_text(TEXT * 6, encoding="utf-8")
    settings = {"corpus": str(notes), "annotate": str(pipeline), "layers": (0,)}
    settings |= {"probes": "linear", "limit": None, "quick": False}
    results = run(tiny_bert, tmp_path, **settings)
    assert {r.task.name for r in results.results} == {"pos", "chunking", "depth"}
    printed = capsys.readouterr()
    assert f"{OTHER_TREES}: 24" in printed.err
    table = next((tmp_path / "results").glob("tiny-bert-*/*/layers.md"))
    assert "depth (NSpr, silver, trees not UD)" in (text := table.read_text("utf-8"))
    assert "pos (accuracy, silver)" in text
    assert "notes annotated by tiny, trees not UD" in text
    assert all(r.silver for r in results.results)
    assert results.frame.silver.all()
    assert results.skipped["agreement"] == "notes has no feats or deprels"


def test_another_pipeline_is_another_corpus(notes, pipeline, tmp_path):
    other = tmp_path / "other"
    nlp = spacy.load(pipeline)
    nlp.add_pipe("sentencizer")
    nlp.to_disk(other)
    assert read(notes, other).digest != read(notes, pipeline).digest


def test_a_pipeline_that_changes_between_finding_and_reading_is_refused(notes, pipeline, tmp_path):
    copy = shutil.copytree(pipeline, tmp_path / "pipeline")
    source = find_corpus(str(notes), annotate=str(copy), cache_dir=tmp_path)
    (copy / "further.txt").write_text("new")
    with pytest.raises(UserError, match="pipeline: changed while texts were read; start again"):
        source.load()


def without_sentences(folder):
    spacy.blank("en").to_disk(folder)


def damaged(folder):
    without_sentences(folder)
    (folder / "config.cfg").write_text("[nlp]\nlang = 3")


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("nowhere", None, r"--annotate nowhere: neither the folder .* nor an installed"),
        ("json", None, "--annotate json: neither"),
        ("blank", without_sentences, "the pipeline does not split sentences"),
        ("blank", damaged, "spaCy cannot load it"),
    ],
)
def test_what_cannot_annotate_is_refused(name, make, message, notes, tmp_path):
    if make:
        make(tmp_path / name)
    with pytest.raises(UserError, match=message):
        read(notes, tmp_path / name if make else name).load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "contains no text"),
        (b" \n\n \n", "contains no text"),
        (b"good line\nbad \xff line\n", "line 2: not UTF-8"),
        ("text".encode("utf-16"), "it looks like UTF-16"),
        (b"a " * 600_000, "line 1: a paragraph of 1,199,999 characters"),
    ],
)
def test_damaged_text(tmp_path, pipeline, content, message):
    path = tmp_path / "my.txt"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(path, pipeline).load()
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
