"""Any treebank: three folders written by hand, and what is wrong with others."""

import shutil
from pathlib import Path

import pytest
from tiny_runs import run

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.examples.examples import NotServedError
from probes.run.inputs import LazyCorpus
from probes.tasks.builtin import tasks

TREEBANKS = Path(__file__).parents[1] / "treebanks"


def load(name, **asked):
    return find_corpus(str(TREEBANKS / name), **asked).load()


def test_words_of_other_languages():
    hebrew = load("UD_Hebrew-Probe")
    assert hebrew.name == "UD_Hebrew-Probe"
    first, _, third, *_ = hebrew.splits["train"]
    assert (first.language, first.words[:2]) == ("he", ("הכלב", "רואה"))
    # A surface form that holds three words.
    assert third.words == ("ב", "ה", "בית", "יש", "ילדים", ".")
    japanese = load("UD_Japanese-Probe")
    assert japanese.splits["test"][1].words == ("古い", "町", "に", "着い", "た", "。")
    assert japanese.layers == {"upos", "heads", "deprels", "lemmas"}
    (_, spanish, *_) = load("UD_Spanish-Probe").splits["train"]
    assert spanish.words == ("Los", "perros", "corren", "cerca", "de", "el", "río", ".")
    assert spanish.heads == (1, 2, -1, 2, 6, 6, 3, 2)


@pytest.mark.parametrize(
    ("name", "served", "skipped"),
    [
        ("UD_Hebrew-Probe", {"pos", "depth"}, {"agreement"}),
        ("UD_Japanese-Probe", {"pos", "depth"}, {"agreement"}),
        ("UD_Spanish-Probe", {"pos", "depth", "agreement"}, set()),
    ],
)
def test_a_folder_runs_as_it_is(tiny_bert, tmp_path, capsys, name, served, skipped):
    settings = {"corpus": str(TREEBANKS / name), "probes": "linear", "layers": (0, 1)}
    results = run(tiny_bert, tmp_path, limit=None, quick=False, **settings)
    assert {r.task.name for r in results.results} == served
    assert set(results.skipped) == {"chunking", "srl"} | skipped
    printed = capsys.readouterr().err
    assert f"skipped chunking: {name} has no chunks" in printed
    for task in skipped:
        assert f"skipped {task}:" in printed
    if name == "UD_Hebrew-Probe":
        assert "left out: no finite verb with Number" in results.skipped["agreement"]
    if name == "UD_Japanese-Probe":
        assert results.skipped["agreement"] == "UD_Japanese-Probe has no feats"
    (folder,) = (tmp_path / "results").glob("tiny-bert-*/*/layers.csv")
    assert folder.parent.name.startswith(f"{name}-")


def test_a_task_that_the_whole_corpus_does_not_serve_is_skipped_with_a_limit_too(
    tiny_bert, tmp_path, capsys
):
    corpus = str(TREEBANKS / "UD_Hebrew-Probe")
    run(tiny_bert, tmp_path, corpus=corpus, limit=2, probes="linear", layers=(0,))
    said = capsys.readouterr().err
    assert "skipped agreement: Task 'agreement' has no examples in the train split" in said
    assert "missing" not in said
    assert "raise --limit" not in said


@pytest.mark.parametrize(
    ("name", "remedy", "by_limit"),
    [("Spanish", "or raise --limit", True), ("Hebrew", r"leave it out with --tasks\.$", False)],
)
def test_a_task_that_a_limit_leaves_without_examples_says_so(name, remedy, by_limit):
    corpus = LazyCorpus(find_corpus(str(TREEBANKS / f"UD_{name}-Probe"), limit=1))
    with pytest.raises(NotServedError, match=remedy) as caught:
        corpus.examples(tasks.get("agreement"), "masked")
    assert caught.value.by_limit is by_limit


def test_the_same_files_however_they_are_named_and_split():
    folder = TREEBANKS / "UD_Spanish-Probe"
    files = sorted(map(str, folder.glob("*.conllu")))
    whole = find_corpus(str(folder))
    for names in ([str(folder / "*.conllu")], files, files[::-1]):
        other = find_corpus(*names, split_by="sentence")  # which changes nothing
        assert (other.slug, other.digest) == (whole.slug, whole.digest)


def copy(tmp_path, *splits, name="UD_Spanish-Probe", prefix="es_probe"):
    for split in splits:
        file = f"{prefix}-ud-{split}.conllu"
        (tmp_path / file).write_bytes((TREEBANKS / name / file).read_bytes())
    return str(tmp_path)


def test_missing_splits_are_cut_only_when_asked(tmp_path):
    folder = copy(tmp_path, "train", "test")
    message = "has train and test, but no dev split; .*--split-by document"
    with pytest.raises(UserError, match=message):
        find_corpus(folder)
    source = find_corpus(folder, split_by="sentence")
    corpus = source.load()
    sizes = {split: len(part) for split, part in corpus.splits.items()}
    assert sizes == {"train": 3, "dev": 1, "test": 2}
    assert corpus.notes == {"dev sentences cut from train, by sentence": 1}
    with pytest.raises(UserError, match="too few documents to cut dev from; try --split-by sent"):
        find_corpus(folder, split_by="document").load()


def withhold_text(folder):
    for path in folder.glob("*.conllu"):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")]
        blank = ["\t".join([r[0], "_", *r[2:]]) if len(r) == 10 else r[0] for r in rows]
        path.write_text("\n".join(blank), encoding="utf-8")


def copies(one, other):
    """A file of the folder under another name."""
    return lambda folder: shutil.copy(folder / one, folder / other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: copy(folder, "train", name="UD_Hebrew-Probe", prefix="he_probe"), r"several corpora \(.*es_probe.*he_probe"),
        (copies("es_probe-ud-train.conllu", "es_probe-ud-test.conllu"), "sent_id 'es_probe-train-1' also occurs in"),
        (copies("es_probe-ud-dev.conllu", "extra.conllu"), "extra.conllu has no split in its name"),
        (copies("es_probe-ud-dev.conllu", "notes-2.conllu"), "notes-2.conllu has no split in its name"),
        (withhold_text, "the release has no text"),
    ],
)  # fmt: skip
def test_a_changed_treebank_is_refused(change, message, tmp_path):
    folder = copy(tmp_path, "train", "dev", "test")
    change(tmp_path)
    with pytest.raises(UserError, match=message):
        find_corpus(folder).load()


def test_one_of_two_treebanks_in_a_folder_is_chosen_by_a_pattern(tmp_path):
    copy(tmp_path, "train", "dev", "test")
    copy(tmp_path, "train", name="UD_Hebrew-Probe", prefix="he_probe")
    assert find_corpus(str(tmp_path / "es_*.conllu")).load().splits["train"][0].language == "es"


def test_a_renamed_file_is_another_corpus(tmp_path):
    # The name tells the language, and that decides what agreement makes of a form.
    before = find_corpus(copy(tmp_path, "train", "dev", "test")).digest
    for path in tmp_path.glob("*.conllu"):
        path.rename(tmp_path / path.name.replace("es_", "en_"))
    assert find_corpus(str(tmp_path)).digest != before


@pytest.mark.parametrize(
    "parts", [("ca", "la", "wt0"), ("c", "l", "v"), ("1", "2", "10"), ("news", "web2", "web10")]
)
def test_whatever_follows_the_split_names_a_part(tmp_path, parts):
    folder = copy(tmp_path, "dev", "test")
    whole = (TREEBANKS / "UD_Spanish-Probe" / "es_probe-ud-train.conllu").read_text("utf-8")
    for part in parts:
        text = whole.replace("es_probe-train", f"es_probe-{part}")
        (tmp_path / f"es_probe-ud-train-{part}.conllu").write_text(text, encoding="utf-8")
    corpus = find_corpus(folder).load()
    assert [s.id.split("-")[1] for s in corpus.splits["train"]] == [
        p for p in parts for _ in "1234"
    ]
    assert corpus.notes["files of train"] == 3
