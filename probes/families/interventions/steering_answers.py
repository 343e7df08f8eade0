"""Greedy answers that a model writes after texts and chats, untouched and after a step."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from probes.common.terminal import progress
from probes.families.interventions.directions import RANDOM
from probes.families.interventions.experiment import exchange_rows
from probes.families.interventions.interchange_pairs import pieces_of
from probes.families.interventions.steering_effects import CHOSEN, Effects
from probes.families.interventions.steering_inputs import Cell, stepped

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from probes.extraction.changing.interventions import Intervention
    from probes.families.interventions.text_prompts import Prompts
    from probes.measurements.context import ModelContext
    from probes.records.row import Row

ANSWERED = "answered"

UNTOUCHED, ALONG = "untouched", "along the direction"
"""Values of ``step``; another one is `RANDOM`, a step of the same length."""

FIRST = "positive", "other", "neither"
"""Values of ``answer``: the one whose word comes first."""

_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
"""Letters of scripts without spaces between words: Thai to Burmese, Khmer, kana and Han."""


def written_answers(
    context: ModelContext, effects: Effects, cells: Sequence[Cell]
) -> tuple[list[Row], dict[str, NDArray[np.str_]], str]:
    """Rows of `ANSWERED`, by ``step`` and ``answer``; all prompts and answers; and two of them.

    Args:
        effects: of a task.
        cells: the layer and dose of each direction that are best on dev.
    """
    ((group, *_),) = effects.parts
    changes: dict[str, Sequence[Intervention]] = {UNTOUCHED: ()}
    for cell in cells:
        own, at = group.steps[cell][0], (RANDOM, cell[1])
        random = next(draws[0] for of, draws in group.steps.items() if of[:2] == at)
        random = random * np.linalg.norm(own) / np.linalg.norm(random)
        changes[cell[0]] = stepped(cell, own).interventions
        changes[f"{RANDOM}, as {cell[0]}"] = stepped(cell, random).interventions
    prompts, written = _written(context, group.test, [*changes.values()])
    by_change = dict(zip(changes, written, strict=True))
    rows: list[Row] = []
    strata, words = effects.resampled()
    for cell in cells:
        keys = {UNTOUCHED: UNTOUCHED, ALONG: cell[0], RANDOM: f"{RANDOM}, as {cell[0]}"}
        for step, key in keys.items():
            first = [first_answer(text, context.options.answers) for text in by_change[key]]
            values = (np.array(first)[:, None] == np.array(FIRST)).astype(np.float64)
            axes = effects.axes_of(cell, chosen=CHOSEN, step=step)
            by_answer = [(cell[1], {**axes, "answer": answer}) for answer in FIRST]
            where = strata, np.arange(len(first)), by_answer
            rows += exchange_rows(ANSWERED, values, *where, tested=False, words=words)
    examples = (
        f"After {prompt[-80:]!r}: " + "; ".join(f"{x} {by_change[x][i]!r}" for x in [*changes][:3])
        for i, prompt in enumerate(prompts[:2])
    )
    texts = {x: np.array(y) for x, y in {"prompts": prompts, **by_change}.items()}
    return rows, texts, ". ".join(examples) + "."


def first_answer(text: str, answers: Sequence[str]) -> str:
    """Which of two answers comes first in a text, as whole words, whatever the case."""
    text, starts = _folded(text), []
    for answer in map(_folded, answers):
        spans = (x.span() for x in re.finditer(re.escape(answer), text))
        whole = ((i, -j) for i, j in spans if _is_edge(text, i) and _is_edge(text, j))
        # Of two that begin at the same word, the longer one is meant.
        starts.append(next(whole, (len(text) + 1, 0)))
    return FIRST[starts.index(min(starts))] if min(starts)[0] < len(text) else FIRST[2]


def _folded(text: str) -> str:
    """Text without case, with one space where there is any, and accents joined to their letter."""
    return " ".join(unicodedata.normalize("NFC", text.casefold()).split())


def _is_edge(text: str, at: int) -> bool:
    """Whether a word may begin or end at a place of a text."""
    if not 0 < at < len(text):
        return True
    around = text[at - 1 : at + 1]
    before, after = (unicodedata.category(x)[0] for x in around)
    # Marks such as vowel signs belong to the letter before them, in all scripts.
    return after != "M" and (not {before, after} <= {*"LMN"} or bool(_UNSPACED.search(around)))


def _written(
    context: ModelContext, prompts: Prompts, changes: Sequence[Sequence[Intervention]]
) -> tuple[list[str], list[list[str]]]:
    """Prompts with special tokens of their text, and the greedy answers under each change."""
    from probes.extraction.changing.interventions import changed_passes
    from probes.extraction.reading.greedy_answers import GreedyDecoder

    assert context.language_model is not None, "given vectors have no language-model head"
    encoder, pieces = context.language_model(), pieces_of(context, prompts.texts)
    decoder, tokenizer = GreedyDecoder(encoder), encoder.words
    start = tokenizer.prefix or [x for x in (tokenizer.start_id,) if x is not None]
    asked = [
        ([] if text.rendered else start, pieces[text].ids[:end].tolist())
        for text, end in zip(prompts.texts, prompts.ends.tolist(), strict=True)
    ]
    answers: list[list[str]] = [[] for _ in changes]
    with progress.bar("answers", len(changes) * len(asked), "answer"):
        for (number, change), (before, ids) in product(enumerate(changes), asked):
            n = min(context.options.generate, context.model.window - len(before) - len(ids))
            with changed_passes(encoder, [_after(len(before), x) for x in change]):
                answers[number].append(decoder.answer([*before, *ids], n)[0])
            progress.advance()
    decode = partial(tokenizer.chats.backend.decode, skip_special_tokens=False)
    return [decode(ids) for _, ids in asked], answers


def _after(n_start: int, change: Intervention) -> Intervention:
    """A change of all tokens after the first ones, which only the pass of the prompt reads."""
    import torch

    from probes.extraction.changing.interventions import Custom

    def change_states(states: torch.Tensor) -> torch.Tensor:
        n = n_start if states.shape[1] > n_start else 0
        return torch.cat([states[:, :n], change.change(states[:, n:], states[:, n:])], dim=1)

    return Custom("after the start", 1, change.site, change_states)
