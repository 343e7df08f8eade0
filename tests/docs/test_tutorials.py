"""The tutorials: their commands run, one after the other, and write what they promise."""

import re
import shutil

import pytest
import torch
from guides import DOCS, Guide
from tiny_models import save
from transformers import AutoModel

from probes.extraction.reading.greedy_answers import GreedyDecoder

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


@pytest.fixture
def follow(tmp_path, tiny_bert, monkeypatch, capsys):
    """Does what a page says, in an empty folder, and returns all that its commands print."""
    monkeypatch.chdir(tmp_path)

    def do(name, section=""):
        guide = Guide(name, section)
        for block in guide.blocks("python"):
            file, _, content = block.removeprefix("# ").partition("\n")
            (tmp_path / file).write_text(content)
        for command, _ in guide.commands:
            # A shell would fill in the stars.
            words = [
                " ".join(map(str, sorted(tmp_path.glob(word)))) if "*" in word else word
                for word in command.split()
            ]
            assert guide.run(" ".join(words), tiny_bert) == 0, (command, capsys.readouterr().err)
        said = capsys.readouterr()
        return said.out + said.err

    return do


def test_start(follow, tmp_path):
    text = follow("start.md")
    assert "depth" in text
    assert "random twin" in text
    assert (tmp_path / "results" / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_course(follow, tmp_path):
    """Its answers are compared with published records in `test_published_numbers.py`."""
    text = follow("course.md")
    for table in ("by group", "selectivity", "ablation"):
        assert f"· {table}" in text or f", {table}" in text
    assert (tmp_path / "ablation.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_a_table_for_a_paper(follow, tmp_path):
    text = follow("tutorials.md", "A table for a paper")
    assert r"\begin{tabular}" in text
    table = (tmp_path / "table.tex").read_text()
    assert table.count(r"\toprule") == 1
    assert table.startswith(r"\begin{table}")
    assert r"\scriptsize random twin &" in table
    for name in ("heatmap.pdf", "curves.pdf"):
        assert (tmp_path / name).read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_two_checkpoints(follow, tmp_path, tiny_bert):
    for step in (1000, 9000):
        folder = tmp_path / f"checkpoint-{step}"
        shutil.copytree(tiny_bert, folder)
        model = AutoModel.from_pretrained(tiny_bert)
        with torch.no_grad():
            model.encoder.layer[0].output.dense.weight.mul_(1 + step / 1000)
        model.save_pretrained(folder)
    text = follow("tutorials.md", "Two checkpoints")
    assert "checkpoint-9000" in text
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_language_models(follow, tmp_path, monkeypatch):
    def first_number(decoder, prompt, _):
        """The answer that Gemma 3 270M gives most often; a tiny model is never right."""
        text = decoder._encoder.words.chats.backend.decode(prompt)
        number = re.findall(r"(\w+-\w+) (?:or|and) ", text)[-1]
        return f" {number}\n\n", prompt, False

    monkeypatch.setattr(GreedyDecoder, "answer", first_number)
    monkeypatch.setenv("COLUMNS", "170")
    save("gemma3", tmp_path / "gemma-3-270m", num_hidden_layers=18, max_position_embeddings=256)
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")
    text = follow("language-models.md")
    require_promised_lines(Guide("language-models.md"), text)


@pytest.mark.slow
def test_languages(follow, tmp_path, monkeypatch):
    """Three parts of `sample` take the place of the treebanks."""
    monkeypatch.setenv("COLUMNS", "170")
    save("gemma3", tmp_path / "gemma-3-270m", num_hidden_layers=18, max_position_embeddings=256)
    (sample,) = (DOCS.parent / "data" / "sample").glob("*train.conllu")
    blocks = sample.read_text(encoding="utf-8").strip().split("\n\n")
    for i, language in enumerate(("en", "de", "hi")):
        part = blocks[60 * i : 60 * (i + 1)]
        part[::2] = [f"# newdoc id = {n}\n{block}" for n, block in enumerate(part[::2])]
        file = tmp_path / f"{language}_pud-ud-test.conllu"
        file.write_text("\n\n".join(part) + "\n\n", encoding="utf-8")
    section = "Several languages"
    text = follow("tutorials.md", section)
    require_promised_lines(Guide("tutorials.md", section), text)
    assert "common pieces" in text


def require_promised_lines(guide, text):
    """Numbers are those of another model: what comes before the first one is promised."""
    printed = {" ".join(line.split()) for line in text.splitlines()}
    for command, lines in guide.commands:
        for line in lines:
            start = re.match(r"\d+ |.* reads|[^\d.−]+", line)[0]
            assert any(each.startswith(start) for each in printed), (command, line)
