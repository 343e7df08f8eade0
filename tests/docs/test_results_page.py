"""What the page of results says: every number is printed by a command, or counted from records.

Sources of a paragraph are the tables of its section, each under the comment with its command, and
what comments above the paragraph name. Each conclusion names its test, and what would refute it.
"""

import re
import shlex
from collections import defaultdict
from functools import cache, partial
from glob import glob
from typing import NamedTuple
from unittest.mock import ANY

import pytest
from killing import ROOT

from probes.__main__ import main
from probes.cli.results import load_results
from probes.records.record_files import read_record

PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")

SOURCE = re.compile(r"<!-- from: (.+?) -->")

TABLE = re.compile(r"<!-- python -m probes .+? -->\n((?:\|.+\n)+)")
"""One that another test compares with what its command prints."""

NUMBER = re.compile(r"(?<![\w.,])\d*(?:,\d{3})*\.?\d+(?![\w])")

NO_RESULTS = re.compile(
    r"`[^`]*`|\]\([^)]*\)|!\[[^]]*\]|<!--.*?-->"  # Code, addresses, pictures, comments
    r"|\bGemma 3 270M|\b(?:MiniLM|L6|v2|r2)\S*|\b(?:19|20)\d\d[ab]?\b|arXiv \S+"  # Names, years
    r"|\b95 %|\b4 bits|\bPrimer [\d.]+|\bversion \d"
)
"""What has digits without being a result."""


class Paragraph(NamedTuple):
    """A paragraph or list: its own sources, the tables of its section, and its text."""

    sources: list[str]
    tables: str
    text: str


def paragraphs():
    """All of the page but tables, pictures, headings and code."""
    for section in re.split(r"(?m)^## ", PAGE):
        tables = " ".join(TABLE.findall(section))
        for block in re.split(r"\n\s*\n", section):
            lines = block.splitlines()
            while lines and re.match(r"\||#|\s{4}|!\[|\*[^*]|<!-- python", lines[0]):
                lines.pop(0)
            if text := "\n".join(lines):
                yield Paragraph(SOURCE.findall(text), tables, NO_RESULTS.sub("", text))


def numbers(text):
    """Numbers as they are written, without the sign and a leading zero."""
    plain = text.replace("−", "-").replace("&lt;", "<")
    return {re.sub(r"^0(?=\.)", "", x) for x in NUMBER.findall(plain)}


def rows_of(pattern, metric):
    """Rows of the one published record whose path matches."""
    (path,) = (ROOT / "results/published").glob(f"{pattern}-????????.json")
    return read_record(path).rows.with_metric(metric)


@cache
def results_of(corpus):
    return load_results(ROOT / f"results/published/*/{corpus}").results


def models():
    """Layers and widths."""
    for result in results_of("sample"):
        yield f"{result.model.n_layers} {result.model.hidden_size}"


def falls(corpus):
    """How far scores fall from the best layer to the last, in points: for each model the least
    and the most of `pos`, `chunking`, `depth` and `srl`.
    """
    tasks = ("pos", "chunking", "depth", "srl")
    of_models = {}
    for result in results_of(corpus):
        if result.probe.family == "linear" and result.task.name in tasks:
            fall = result.score(result.best_layer) - result.score(result.model.n_layers)
            of_models.setdefault(result.model.name, []).append(round(100 * fall))
    return [f"{name} {min(fall)} to {max(fall)}" for name, fall in of_models.items()]


def paradigms_of_clams():
    """Accuracies of Gemma in its two lowest paradigms, which are of polarity items."""
    rows = rows_of("gemma-*/clams-en/pairs", "pair_accuracy")
    accuracies = {row.axes["paradigm"]: row.value for row in rows if "paradigm" in row.axes}
    lowest = sorted(accuracies, key=accuracies.__getitem__)[:2]
    assert all("npi" in paradigm for paradigm in lowest)
    return [f"{100 * accuracies[paradigm]:.0f}" for paradigm in lowest]


def answers_to_negated_contexts():
    """In how many sentences Gemma prefers the true word, of how many."""
    for row in rows_of("gemma-*/lm-diagnostics/completion", "sensitivity"):
        paradigm = row.axes.get("paradigm", "")
        whole = row.axes == {"paradigm": paradigm, "phenomenon": ANY, "threshold": 0}
        if whole and "NEG-136" in paradigm:
            yield f"{row.value * row.n:.0f} of {row.n}"


def edges_of_trees():
    """UUAS of MiniLM's embeddings and of its last layer, at the reported rank."""
    for row in rows_of("all-MiniLM-*/sample/structure", "uuas"):
        if row.split == "test" and row.axes == {"rank": 64} and row.layer in (0, 6):
            yield f"{100 * row.value:.1f}"


def answers_of_interchange():
    """Answers in paradigms that separate a verb from its subject: all, those that were right, and
    how many of these follow the noun and the last word at layers 13 and 14. Of the twin, where the
    last word takes over, and how many answers were right.
    """
    of_verbs = paradigms_of_verbs()
    yield str(sum(answers("log_odds_ratio")[x] for x in of_verbs))
    yield str(sum(answers("flipped")[x] for x in of_verbs))
    for end in (noun, last_token):
        for layer in (13, 14):
            follow = (answers("flipped")[x] * end("flipped", x)[layer] for x in of_verbs)
            yield f"{sum(follow):.0f}"
    twin = first_layers_of_the_last_token("flipped", "random-gemma")
    for x in of_verbs:
        yield str(twin[x])
    yield str(sum(answers("flipped", "random-gemma")[x] for x in of_verbs))


COUNTED = {
    "answers of interchange": answers_of_interchange,
    "answers to negated contexts": answers_to_negated_contexts,
    "paradigms of clams-en": paradigms_of_clams,
    "edges of trees": edges_of_trees,
    "models": models,
    "falls on ewt": partial(falls, "ewt"),
}
"""Sources other than commands: functions that yield the numbers."""


def output_of(command, read_output):
    words = [sorted(glob(word)) or [word] for word in shlex.split(command)[3:]]
    assert main([*(each for several in words for each in several)]) == 0
    return read_output().out


PARAGRAPHS = [pytest.param(x, id=" ".join(x.text.split()[:5])) for x in paragraphs()]


@pytest.mark.parametrize("paragraph", PARAGRAPHS)
def test_numbers_of_a_paragraph_are_those_of_its_sources(paragraph, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    known = numbers(paragraph.tables)
    for source in paragraph.sources:
        if source.startswith("python -m probes "):
            known |= numbers(output_of(source, capsys.readouterr))
        else:
            known |= numbers(" ".join(COUNTED[source]()))
    assert numbers(paragraph.text) - known == set()


def test_numbers_are_found():
    text = NO_RESULTS.sub("", "At layer 14 of Gemma 3 270M (Rogers et al. 2020), .5 to 75.7 ± 8.6")
    assert numbers(text) == {"14", ".5", "75.7", "8.6"}
    assert len([x for x in paragraphs() if numbers(x.text)]) >= 10


def test_each_conclusion_names_its_test_and_what_would_refute_it():
    *sections, _ = re.split(r"(?m)^## ", PAGE)[1:]
    assert len(sections) >= 6
    for section in sections:
        assert TABLE.search(section), section[:40]
        assert section.count("**Tested") == 1, section[:40]
        assert re.search(r"\*\*It would be refuted\*\*", section), section[:40]
    assert len(PAGE.splitlines()) <= 250


INTERCHANGED_LAYERS = 0, 9, 12, 13, 14, 15, 18


@cache
def interchange_rows(metric, model="gemma"):
    """Rows of paradigms in which whole states were exchanged."""
    rows = rows_of(f"{model}-*/clams-en/interchange", metric)
    return [x for x in rows if x.axes["direction"] == "whole" and "paradigm" in x.axes]


def answers(metric, model="gemma"):
    """How many answers a metric is about, by paradigm."""
    return {row.axes["paradigm"]: row.n for row in interchange_rows(metric, model)}


@cache
def effects(metric, model="gemma"):
    """Effects of exchanged states, by paradigm, position and layer."""
    values = defaultdict(lambda: defaultdict(dict))
    for row in interchange_rows(metric, model):
        values[row.axes["paradigm"]][row.axes["position"]][row.layer] = row.value
    return values


def noun(metric, paradigm, model="gemma"):
    """Effects of the word that differs, by layer."""
    positions = effects(metric, model)[paradigm]
    return positions[min(positions)]


def last_token(metric, paradigm, model="gemma"):
    """Effects of the last token, by layer."""
    positions = effects(metric, model)[paradigm]
    return positions[max(positions)]


def first_layers_of_the_last_token(metric, model="gemma"):
    """Where its state has a larger effect than that of the word that differs, by paradigm."""
    return {
        x: min(
            layer
            for layer, effect in noun(metric, x, model).items()
            if last_token(metric, x, model)[layer] > effect
        )
        for x, positions in effects(metric, model).items()
        if len(positions) > 1
    }


def paradigms_of_verbs():
    """Paradigms that separate a verb, and not a reflexive, from its subject."""
    return [x for x in first_layers_of_the_last_token("flipped") if "reflexive" not in x]


def test_interchange_says_where_the_number_goes():
    of_verbs = paradigms_of_verbs()
    flipped = first_layers_of_the_last_token("flipped")
    assert [flipped[x] for x in of_verbs] == [14] * 6
    assert [layer for x, layer in flipped.items() if x not in of_verbs] == [10] * 3
    twin = first_layers_of_the_last_token("flipped", "random-gemma")
    assert {twin[x] for x in of_verbs} == {1, 2}
    log_odds = first_layers_of_the_last_token("log_odds_ratio")
    # In one, the noun has no effect.
    assert sorted(log_odds[x] for x in of_verbs) == [0] + [14] * 5
    for name, end in (("the noun", noun), ("the last word", last_token)):
        means = [
            sum(end("flipped", x)[layer] for x in of_verbs) / len(of_verbs)
            for layer in INTERCHANGED_LAYERS
        ]
        assert f"| {name} | {' | '.join(f'{100 * x:.0f}' for x in means)} |" in PAGE
