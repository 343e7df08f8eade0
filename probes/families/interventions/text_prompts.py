"""Prompts with two answers each, and their log-odds in changed passes; prompts made of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.common.errors import UserError
from probes.examples.examples import NotServedError
from probes.extraction.reading.views import Text
from probes.families.interventions.experiment import ChangedPass
from probes.families.interventions.interchange_pairs import pieces_of

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.data.sentence import Corpus
    from probes.extraction.reading.alignment import Pieces, WordTokenizer
    from probes.extraction.reading.collectors import Collector
    from probes.measurements.context import ModelContext, TaskContext
    from probes.records.values import Frozen


def nothing_stored(corpus: Corpus, layers: Sequence[int], options: Frozen) -> Collector:
    """A collector of no text: prompts depend on tokens, which are known when the model is."""
    from probes.families.interventions.readouts import ContinuationLogits

    return ContinuationLogits(0, np.zeros((0, 1), dtype=np.int64))


class Prompts(NamedTuple):
    """Prompts of a split, each with pairs of answers: the one to steer to, and the other.

    Attributes:
        texts: texts that begin with the prompts.
        ends: number of tokens of each prompt. Shape (prompts,).
        answers: first tokens of the answers.
        signs: 1 to step along directions, −1 against them. Shape (prompts,).
        units: words that are exchanged; or twice the document, which is resampled.
    """

    texts: Sequence[Text]
    ends: Ints
    answers: Sequence[Sequence[tuple[int, int]]]
    signs: Ints
    units: Sequence[tuple[str, str]]

    def some(self, rows: Ints) -> Prompts:
        """Some of the prompts."""
        texts, answers = [self.texts[i] for i in rows], [self.answers[i] for i in rows]
        units = [self.units[i] for i in rows]
        return Prompts(texts, self.ends[rows], answers, self.signs[rows], units)

    @property
    def columns(self) -> Ints:
        """Tokens of the first pair of answers. Shape (prompts, 2)."""
        return np.array([pairs[0] for pairs in self.answers])

    def log_odds(
        self, context: ModelContext, passes: Callable[[int], Sequence[ChangedPass]]
    ) -> Floats:
        """Mean log-odds of the answers to steer to against the others. Shape (passes, prompts).

        Args:
            passes: makes the passes for prompts of one sign.
        """
        from probes.families.interventions.readouts import ContinuationLogits

        # Where a prompt has fewer pairs of answers, the same token stands twice and adds nothing.
        columns = np.zeros((len(self.texts), 2 * max(map(len, self.answers))), dtype=np.int64)
        for row, pairs in zip(columns, self.answers, strict=True):
            row[: 2 * len(pairs)] = np.concatenate(pairs)
        counts = np.array([len(pairs) for pairs in self.answers])
        by_prompt: dict[int, Floats] = {}
        for sign in np.unique(self.signs).tolist():
            rows = np.flatnonzero(self.signs == sign)
            collector = ContinuationLogits(self.ends[rows], columns[rows])
            texts = (self.texts[i] for i in rows.tolist())
            logits = np.stack(collector.read(context, texts, passes(sign))[0])
            odds = (logits[..., ::2] - logits[..., 1::2]).sum(-1) / counts[rows]
            by_prompt |= dict(zip(rows.tolist(), odds.T, strict=True))
        return np.stack([by_prompt[i] for i in range(len(self.texts))], axis=1)


def about_answers(context: ModelContext, task: TaskContext, prompts: Prompts) -> str:
    """Sentences on the classes of a task, their answers, and a prompt with its answer."""
    positive, other = context.options.answers
    return (
        f"{task.task.name}: {task.examples.classes[1]!r} is the positive class, with the answer "
        f"{positive!r}; the other is {other!r}. A prompt with its answer: "
        f"{prompts.texts[0].words[0][-80:]!r}."
    )


def text_prompts(
    context: ModelContext, task: TaskContext, split: str, n: int, flag: str
) -> tuple[Prompts, Ints]:
    """Up to n random texts of a split with the prompt behind them, if they fit into the window.

    Args:
        context: its options have a `prompt` and two `answers`.
        flag: the flag that gives the answers.

    Returns:
        the prompts, and the number of each one's example in the split (prompts,).

    Raises:
        NotServedError: no text fits.
        UserError: the answers begin with the same token.
    """
    part, tokenizer = task.examples.splits[split], context.tokenizer
    assert tokenizer is not None, "given vectors have no language-model head"
    texts, ends, tokens, numbers = [], [], [], []
    for number in np.random.default_rng(0).permutation(len(part.texts)).tolist():
        versions = _with_answers(tokenizer, part.texts[number], context.options)
        pieces = pieces_of(context, versions)
        if len(pieces) < len(versions) or versions[1] in texts:
            continue
        end, both = _first_tokens(flag, context.options, [pieces[x] for x in versions])
        if not context.model.causal and any(len(ids) > end + 1 for ids in both):
            wrong = f"{flag} {','.join(context.options.answers)}"
            raise UserError(f"{wrong}: a masked model answers with one token; give whole tokens.")
        texts.append(versions[1])
        ends.append(end)
        tokens.append([(both[0][end], both[1][end])])
        numbers.append(number)
        if len(texts) == n:
            break
    if not texts:
        raise NotServedError(f"{task.task.name}: no prompt of {split} fits into the model's window")
    documents = part.partition.of_sentence[part.sentence[numbers]].tolist()
    units = [(str(x), str(x)) for x in documents]
    prompts = Prompts(texts, np.array(ends), tokens, np.ones(len(texts), int), units)
    return prompts, np.array(numbers)


def require_two_tokens(flag: str, tokenizer: WordTokenizer, text: Text, options: Any) -> None:
    """Check answers, if there are any, after one text, before anything is computed.

    Args:
        flag: the flag that gives the answers.

    Raises:
        UserError: the answers begin with the same token.
    """
    if options.answers:
        versions = _with_answers(tokenizer, text, options)
        _first_tokens(flag, options, [*tokenizer(versions)])


def _first_tokens(
    flag: str, options: Any, versions: Sequence[Pieces]
) -> tuple[int, list[list[int]]]:
    """The place of the first token of the answers, and the tokens of a prompt with each answer."""
    prompt, *both = (pieces.ids.tolist() for pieces in versions)
    differ = (i for i, two in enumerate(zip(*both, strict=False)) if two[0] != two[1])
    if (end := next(differ, len(prompt) + 1)) > len(prompt):
        wrong = f"{flag} {','.join(options.answers)}"
        raise UserError(f"{wrong}: they begin with the same token after a prompt; give others.")
    return end, both


def _with_answers(tokenizer: WordTokenizer, text: Text, options: Any) -> list[Text]:
    """The prompt of a text alone, and with each answer; a chat ends with the header of one."""
    before = tokenizer.chats.render(text.words[0]).text if text.chat else text.words[0]
    return [
        Text((before + options.prompt + x,), (0, 1), written=True, special=text.rendered)
        for x in ("", *options.answers)
    ]
