"""Interchange interventions: a part of one prompt's state in place of another's.

The prompts of a pair differ in one token, and so does the continuation that is right; or they are
texts of two classes, with an answer for each (`interchange_texts.py`). If the answer follows the
exchanged part, the model uses it (Geiger et al. 2021; CausalGym, Arora et al. 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from probes.common.errors import counted
from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.extraction.reading.views import View
from probes.families.interventions import InterchangeOptions
from probes.families.interventions.changes import exchanged_logits
from probes.families.interventions.controls import N_ARBITRARY_PAIRS, arbitrary_tokens
from probes.families.interventions.directions import DIRECTIONS, MEAN, WHOLE_VECTOR, directions
from probes.families.interventions.experiment import resampling_units
from probes.families.interventions.interchange_pairs import (
    FEWEST_PAIRS,
    Pair,
    aligned_pairs,
    contrasts_by_paradigm,
    pieces_of,
)
from probes.families.interventions.interchange_scores import (
    ARBITRARY,
    DIFFERENCE,
    FLIPPED,
    LAST,
    MASKED,
    OWN,
    RATIO,
    ParadigmScores,
    interchange_rows,
)
from probes.families.interventions.interchange_texts import interchange_of_texts
from probes.families.interventions.text_prompts import nothing_stored, require_two_tokens
from probes.measurements.chart_views import Cells, Lines
from probes.measurements.measurement import Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot

if TYPE_CHECKING:
    import torch

    from probes.common.arrays import Floats, Ints
    from probes.measurements.context import ModelContext

_POOLED = {"paradigm": None, "exchanged": None, "answers": OWN}

_OF_TEXTS = {"exchanged": ..., "answers": OWN}

_UNRELATED = (
    "How far the odds of two unrelated tokens move, in either direction: the mean of "
    f"{N_ARBITRARY_PAIRS} draws for each pair of prompts"
)


@measurement(
    "interchange",
    of="model",
    after="scores",
    version=3,
    items="pairs",
    options=InterchangeOptions,
    head="needed",
    reads=lambda corpus, options: View("written", ()),
    collector=nothing_stored,
    check=partial(require_two_tokens, "--interchange-answers"),
    shares_arrays=True,
    shows=(
        Pivot("flipped by the whole vector, %", (FLIPPED,), columns=("at",),
              where={**_POOLED, "direction": WHOLE_VECTOR},
              note="Proportion of pairs whose answer becomes the source's, if the state at this "
              "layer and token is the source's. Only of pairs whose base and source were answered "
              "right."),
        Pivot("log-odds ratio in nats", (RATIO,), columns=("direction",), where=_POOLED, apart="at",
              note="How far the odds move from the base's answer to the source's, if only the part "
              "of the state along a direction is the source's; whole: all of it."),
        Pivot("flipped, %", (FLIPPED,), columns=("direction",), where=_POOLED, apart="at"),
        Pivot("log-odds ratio of two arbitrary tokens in nats", (RATIO,), columns=("direction",),
              where={**_POOLED, "answers": ARBITRARY}, apart="at", note=f"{_UNRELATED}."),
        Pivot("log-odds ratio less that of two arbitrary tokens in nats", (RATIO,),
              columns=("direction",), where={**_POOLED, "answers": DIFFERENCE}, apart="at",
              note=f"{_UNRELATED}, is subtracted."),
        Pivot("log-odds ratio of texts in nats", (RATIO,), columns=("direction",), where=_OF_TEXTS,
              apart="exchanged",
              note="How far the odds move from the answer of the base's label to the other, if the "
              "state of the last token at this layer, or its part along a direction, is that of a "
              "text of the other class; same class: all of it, of a text of the base's class."),
        Pivot("texts flipped, %", (FLIPPED,), columns=("direction",), where=_OF_TEXTS,
              apart="exchanged"),
        Cells("interchange", FLIPPED, across="position", apart="prompt", low=0.0, high=1.0,
              where={"direction": WHOLE_VECTOR, "paradigm": ..., "answers": OWN},
              title="Flipped by the whole vector",
              note="Proportion of pairs whose answer becomes the source's. Positions: tokens in "
              "the title of the panel."),
        Lines("interchanged", RATIO, line="direction", apart="at", where=_POOLED),
        Lines("interchanged_texts", RATIO, line="direction", apart="exchanged", where=_OF_TEXTS),
    ),
    use_columns=tuple(
        UseColumn(name,
                  "Interchanged: proportion of answers that follow the source if the last (or "
                  "masked) token's state at this layer is the source's, or its part along the mean "
                  "difference.",
                  FLIPPED, {**where, "direction": direction, "at": (LAST, MASKED)},
                  axis, task)
        for name, direction in (("interchanged", WHOLE_VECTOR), ("along one direction", MEAN))
        for where, axis, task in ((_POOLED, "", TASK), (_OF_TEXTS, "exchanged", ""))
    ),
)  # fmt: skip
def interchange(context: ModelContext) -> Measured:
    """Answers that follow a source's state, exchanged by layer, position and direction.

    Rows: ``log_odds_ratio``, the mean over pairs of log p(answer of the base) − log p(answer of the
    source) in the untouched pass minus that in the changed one; ``flipped``, the share of pairs
    that then prefer the source's answer, among those whose base and source were answered right.
    Axes: ``paradigm``, ``position`` (of the token, from 1) and ``prompt`` (paradigm and tokens);
    or, over all paradigms, ``at``. Further ``direction`` and ``answers``. p-values of log-odds
    ratios are corrected over layers and positions. Pairs that exchange the same word are resampled
    together. Texts have `OWN` answers only, and the task in ``exchanged``; see `interchange_texts`.

    Raises:
        NotServedError: no pairs or texts fit.
        UserError: answers to texts are missing, or begin with the same token.
    """
    return _of_paradigms(context) if context.corpus.items else interchange_of_texts(context)


def _of_paradigms(context: ModelContext) -> Measured:
    """Values of all paradigms of minimal pairs; NotServedError if no pairs fit."""
    causal, sizes = context.model.causal, (context.options.training, context.options.pairs)
    paradigms = contrasts_by_paradigm(context.corpus.items, causal, *sizes)
    texts = (text for parts in paradigms.values() for part in parts for x in part for y in x.texts()
             for text in y)  # fmt: skip
    pieces = pieces_of(context, texts)
    measured: list[ParadigmScores] = []
    unfit: list[str] = []
    for paradigm, parts in paradigms.items():
        train, test = aligned_pairs(parts, pieces, causal, sizes)
        if min(len(train), len(test)) < FEWEST_PAIRS:
            unfit.append(paradigm)
            continue
        end, position, n = test[0].shape
        # In a decoder, tokens before the one that differs have the same states in both prompts.
        places = range(position, end) if causal else range(n)
        tokens = (token for x in pieces.values() for token in x.ids.tolist())
        columns = arbitrary_tokens(tokens, [pair.answers for pair in test], len(measured))
        logits = _logits_by_cell(context, train, test, places, columns, len(measured))
        measured.append(ParadigmScores.of(paradigm, test, places, *logits))
    if not measured:
        raise NotServedError(
            f"none of its {len(unfit)} paradigms has {2 * FEWEST_PAIRS} pairs of prompts that "
            "differ in one token and want different continuations, with equally many tokens before"
        )
    n_pairs = sum(len(x.pairs) for x in measured)
    n_words = len(set(resampling_units([pair.changed for x in measured for pair in x.pairs])))
    n_answers = sum(len(x.right) for x in measured)
    notes = [
        f"{len(measured)} of {len(paradigms)} paradigms have pairs that fit: {n_pairs:,} in test, "
        f"with {n_answers:,} continuations. They exchange {counted(n_words, 'pair')} of words "
        "(those that share a word count as one).",
        *(x.sentence(context.layers) for x in measured),
    ]
    if unfit:
        notes.append(f"Fewer than {FEWEST_PAIRS} pairs for training or test: {', '.join(unfit)}.")
    facts = {"paradigms": len(measured), "pairs": n_pairs, "continuations": n_answers}
    return Measured(interchange_rows(measured, context.layers, causal), facts=facts, notes=notes)


def _logits_by_cell(
    context: ModelContext,
    train: Sequence[Pair],
    test: Sequence[Pair],
    places: Sequence[int],
    columns: Ints,
    seed: int,
) -> tuple[Floats, Floats, Floats]:
    """Exchange states at every layer and place of test pairs, along directions fitted to train.

    Nothing is computed where the states of base and source are equal.

    Args:
        train, test: pairs of one shape.
        places: number of tokens before each token that is changed.
        columns: tokens whose logits are wanted, by test pair. Shape (pairs, k).
        seed: seeds the controls.

    Returns:
        logits of the untouched bases and sources, each (pairs, k), and of bases with the source's
        state (layers, places, directions, pairs, k).
    """
    from probes.families.interventions.readouts import ContinuationLogits

    layers, end = context.layers, test[0].end

    def read(pairs: Sequence[Pair], columns: Ints) -> tuple[torch.Tensor, Floats]:
        """States (pairs, 2, layers, places, hidden size) and logits (pairs, 2, k)."""
        texts = (text for pair in pairs for text in (pair.base, pair.source))
        collector = ContinuationLogits(end, np.repeat(columns, 2, axis=0), layers, places)
        (logits,), states = collector.read(context, texts)
        return states.unflatten(0, (-1, 2)), logits.reshape(len(pairs), 2, -1)

    fitted, _ = read(train, np.zeros((len(train), 1), dtype=np.int64))
    states, logits = read(test, columns)
    classes = np.array([z for pair in train for z in (pair.side, 1 - pair.side)])
    exchanges, cells = [], []
    for (i, layer), (j, place) in product(enumerate(layers), enumerate(places)):
        base_states, source_states = states[:, :, i, j].unbind(1)
        if base_states.equal(source_states):
            continue
        rng, x = np.random.default_rng([seed, layer, place]), fitted[:, :, i, j].flatten(0, 1)
        by_name = directions(x.double().numpy(), classes, len(test), rng, paired=True)
        for number, name in enumerate(DIRECTIONS):
            exchanges.append((layer, place, source_states, by_name.get(name)))
            cells.append((i, j, number))
    bases, prompts = (pair.base for pair in test), ContinuationLogits(end, columns)
    untouched, *changed = exchanged_logits(context, bases, prompts, exchanges)
    by_cell = np.tile(untouched, (len(layers), len(places), len(DIRECTIONS), 1, 1))
    for cell, logits_of_cell in zip(cells, changed, strict=True):
        by_cell[cell] = logits_of_cell
    return untouched, logits[:, 1], by_cell
