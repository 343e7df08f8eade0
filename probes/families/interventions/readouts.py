"""Read-outs of a model's own answers, in untouched and changed passes.

Log-odds of continuations after a prompt; of a corpus, the loss per piece and the agreement of
verbs; gradients of the loss at each head.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch

from probes.common.errors import UserError
from probes.examples.verb_forms import TASK, Forms, Question, answers_of, spaced
from probes.extraction.changing.head_collectors import BY_HEAD, LossGradients
from probes.extraction.models.lm_head import Lens
from probes.extraction.reading.chats import ChatTemplate, Rendered
from probes.extraction.reading.collectors import Collector, ModelProperties, layer_states
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import single_shard
from probes.extraction.reading.token_scores import LossOfWords, TokenScores, joined_token_scores
from probes.extraction.reading.views import Text, view_over
from probes.extraction.reading.windows import Window
from probes.families.interventions.experiment import (
    CLOZE,
    LOG_ODDS,
    LOSS,
    SMALLEST,
    ChangedPass,
    comparisons,
    mean_effect_rows,
    mean_effects,
    read_passes,
)
from probes.records.header import ModelRecord
from probes.records.row import Row
from probes.statistics.bootstrap import means
from probes.statistics.significance import smallest_drop

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.data.sentence import Sentence
    from probes.extraction.reading.alignment import Pieces, WordTokenizer
    from probes.extraction.reading.shards import Shard
    from probes.extraction.reading.token_scores import ScoredStretches
    from probes.measurements.context import ModelContext
    from probes.records.values import Estimate
    from probes.statistics.partition import Partition


class ContinuationLogits(Collector):
    """Logits of some tokens after prompts, and states of some layers.

    Args:
        end: number of tokens before the continuation, of all texts or of each.
        columns: tokens whose logits are kept, by text. Shape (texts, k).
        layers, places: layers and tokens whose states are kept; None for the token at which answers
            are read, the last or the masked one.

    Attributes:
        rows: number of the text of each row of the running pass.
        read_at: token of each row at which answers are read.
        n_prefix: number of special tokens before a text.
    """

    name = "prompts"
    parts = "logits", "states"
    after_start = True
    applies_head = True
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self,
        end: int | Ints,
        columns: Ints,
        layers: Sequence[int] = (),
        places: Sequence[int] | None = (),
    ) -> None:
        self._columns = torch.from_numpy(columns)
        self._ends: list[int] = np.broadcast_to(end, len(columns)).tolist()
        self._layers, self._n_places = layers, 1 if places is None else len(places)
        self._places = None if places is None else torch.tensor(places, dtype=torch.long)
        self._head_is_linear: bool | None = None
        self.rows, self.read_at = torch.empty((2, 0), dtype=torch.long)
        self.n_prefix, self._n_suffix = 0, 0

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Size of logits and states."""
        n_states = len(shard.texts) * len(self._layers) * self._n_places
        return 4 * (self._columns.numel() + n_states * model.hidden_size)

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin with nothing."""
        self._logits = torch.full(self._columns.shape, torch.nan)
        self._states: torch.Tensor | None = None

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """Texts that are cut before the continuation, or have a mask in its place.

        Raises:
            UserError: the model reads in both directions and has no mask token.
        """
        if not reader.causal and reader.mask_id is None:
            raise UserError("This model reads in both directions and has no mask token.")
        prompts = []
        # Prompts of a decoder are cut.
        self.n_prefix, self._n_suffix = reader.n_prefix, 0 if reader.causal else reader.n_suffix
        for window in windows:
            at = self.n_prefix + self._ends[window.text]
            ids = window.ids[:at] if reader.causal else window.ids.copy()
            if reader.mask_id is not None and not reader.causal:
                ids[at] = reader.mask_id
            position, owner = np.array([at - reader.causal]), np.array([window.text])
            prompts.append(
                replace(window, ids=ids, position=position, owner=owner, share=np.ones(1))
            )
        return prompts

    def pieces(self, windows: PaddedWindows) -> torch.Tensor:
        """Tokens of the prompts, without a start token."""
        return windows.pieces_between(self.n_prefix, self._n_suffix)

    def prepare(self, windows: PaddedWindows) -> None:
        """Keep the numbers of the texts that the next pass reads, and where answers are read."""
        self.rows = windows.text
        self.read_at = windows.position % windows.inputs["input_ids"].shape[1]

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Keep the logits and states of one pass."""
        last = output.last_hidden_state.flatten(0, 1)
        last = last[windows.position.to(last.device)]
        self._logits[windows.text] = self._answers(last, self._columns[windows.text]).cpu()
        if self._layers:
            at, by_layer = self.read_at[:, None], layer_states(output)
            if self._places is not None:
                at = (self._places + self.n_prefix).expand(len(self.rows), -1)
            every = torch.arange(len(at))[:, None]
            parts = [by_layer[k][every, at].float().cpu() for k in self._layers]
            states = torch.stack(parts, dim=1)
            if self._states is None:
                self._states = states.new_empty(len(self._columns), *states.shape[1:])
            self._states[windows.text] = states

    def _answers(self, states: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Logits of some tokens. Shape (rows, k).

        If the head is a linear map in float32, only its rows of these tokens are used: all 262,144
        of Gemma 3 take as long as its blocks.

        Args:
            states: shape (rows, hidden size).
            columns: shape (rows, k).
        """
        lens, columns = cast("Lens", self.head), columns.to(states.device)
        head = lens.model.get_output_embeddings()
        with torch.inference_mode():
            if self._head_is_linear:
                products: torch.Tensor = (head.weight[columns] @ states[:, :, None]).squeeze(-1)
                return products if head.bias is None else products + head.bias[columns]
            logits = torch.cat([lens.logits(part).float() for part in states.split(64)])
            if self._head_is_linear is None:
                linear = isinstance(head, torch.nn.Linear) and head.weight.dtype == torch.float32
                linear = linear and head.in_features == states.shape[1]
                room = 1e-5 * float(logits.abs().max())
                self._head_is_linear = linear and torch.allclose(head(states), logits, 1e-4, room)
            return logits.gather(1, columns)

    def finish(self) -> dict[str, torch.Tensor]:
        """Logits (texts, k) and states (texts, layers, places, hidden size).

        Raises:
            UserError: a logit is not finite.
        """
        if not self._logits.isfinite().all():
            raise UserError(
                "The language-model head gave a number that is not finite. The model is broken, or "
                "--dtype is too narrow (try --dtype float32)."
            )
        parts = {"logits": self._logits}
        return parts if self._states is None else {**parts, "states": self._states}

    def read(
        self,
        context: ModelContext,
        texts: Iterable[Text],
        passes: Sequence[ChangedPass] = (ChangedPass(),),
    ) -> tuple[list[Floats], torch.Tensor]:
        """Logits in each pass, by default the untouched one, in float64; and states in the last."""
        read = read_passes(context, passes, view_over(texts, "written"), self)
        arrays = [x for _, x in read]
        logits = [x["logits"].double().numpy() for x in arrays]
        return logits, arrays[-1].get("states", torch.empty(0))


_MASKED = 0.15
"""Share of words to mask at once for a masked model, as in training."""


@dataclass(frozen=True)
class Questions:
    """Texts and verbs for the model's own answers.

    Attributes:
        texts: sentences as written.
        words: places of the words whose surprisal is the loss, by text.
        verbs: texts with the right and the wrong form of each verb.
        of_text, of_verb: number in the split of each text's and each verb's sentence.
        split: name of the split.
    """

    texts: Sequence[Text]
    words: Mapping[Text, Ints]
    verbs: Sequence[Question]
    of_text: Ints
    of_verb: Ints
    partition: Partition
    split: str


def questions_in(context: ModelContext, split: str, sample: Ints) -> Questions:
    """Words of a sample of sentences; for test also all verbs of the split."""
    sentences, verbs, of_verb = context.corpus.splits[split], [], []
    for scored in context.tasks if split == "test" else ():
        if scored.task.name == TASK:
            forms = Forms.of(context.corpus.splits["train"])
            examples = scored.examples.splits[split]
            for number, example in zip(examples.sentence, examples.examples, strict=True):
                question = forms.question(sentences[number], example)
                if not isinstance(question, str):
                    verbs.append(question)
                    of_verb.append(number)
    sampled = [sentences[i] for i in sample]
    texts, words = loss_words(sampled, context.model.causal, context.tokenizer)
    some = [i for i, text in enumerate(texts) if len(words[text])]
    numbers = sample[some], np.array(of_verb, dtype=int)
    partition = context.partition(split)
    return Questions([texts[i] for i in some], words, verbs, *numbers, partition, split)


def loss_words(
    sentences: Sequence[Sentence], causal: bool, tokenizer: WordTokenizer | None = None
) -> tuple[list[Text], dict[Text, Ints]]:
    """Written texts, and the places of the words whose surprisal is the loss.

    Words of whole texts are stretches between spaces; of chats, only those in messages. Only words
    with a letter count. Special tokens and the template are read but not scored, nor is a piece
    that begins in the template or in blanks before a message. A causal model scores all words, a
    masked model a random sample with at least one word per text.
    """
    rng, texts, words = np.random.default_rng(0), [], {}
    for sentence in sentences:
        if rendered := sentence.chat or sentence.special:
            assert tokenizer is not None
            stretches, is_word = _rendered_stretches(sentence, tokenizer.chats)
        else:
            between_spaces = re.findall(r"\s*\S+", sentence.words[0]) if sentence.whole else ()
            stretches = [*(between_spaces or sentence.written or spaced(sentence.words))]
            is_word = [True] * len(stretches)
        text = Text(tuple(stretches), (0, len(stretches)), written=True, special=rendered)
        texts.append(text)
        if text not in words:
            numbered = zip(range(len(stretches)), stretches, is_word, strict=True)
            with_letter = [i for i, x, may in numbered if may and any(map(str.isalpha, x))]
            size = len(with_letter) if causal else math.ceil(_MASKED * len(with_letter))
            words[text] = np.sort(rng.permutation(np.array(with_letter, dtype=int))[:size])
    return texts, words


def _rendered_stretches(sentence: Sentence, chats: ChatTemplate) -> tuple[list[str], list[bool]]:
    """Stretches of a text with its special tokens, and whether each may be a word of a message."""
    added = chats.backend.get_added_tokens_decoder().values()
    special = "|".join(re.escape(x.content) for x in added if x.special) or "(?!)"
    whole = Rendered(sentence.words[0], spans=((0, len(sentence.words[0])),))
    rendered = chats.render(whole.text) if sentence.chat else whole
    text, spans = rendered.text, rendered.spans
    stretch = re.compile(rf"{special}|\s*(?!{special})\S+?(?={special}|\s|$)|\s+")
    edges = sorted({0, len(text), *(edge for span in spans for edge in span)})
    stretches: list[str] = []
    is_word: list[bool] = []
    for start, end in pairwise(edges):
        inside = any(first <= start and end <= last for first, last in spans)
        parts = stretch.findall(text[start:end])
        stretches += parts
        is_word += [inside and not re.fullmatch(special, part) for part in parts]
    return stretches, is_word


def own_answers(
    context: ModelContext, passes: Sequence[ChangedPass], questions: Questions
) -> Iterator[Row]:
    """Increase of loss, and drop of agreement, from one pass to another.

    Raises:
        NoHeadError: the model has no language-model head.
    """
    compared, where = comparisons(passes), (questions.partition, questions.split)
    if questions.texts:
        log_p, pieces = log_p_of_words(context, passes, questions.texts, questions.words)
        yield from mean_effect_rows(LOSS, compared, log_p, questions.of_text, pieces, *where)
    if not questions.verbs:
        return
    texts = [text for x in questions.verbs for text in x]
    answers = [
        answers_of(scores.with_word_ends(), questions.verbs)
        for scores in _scores_by_pass(context, passes, texts, TokenScores())
    ]
    if (comparable := answers[0].comparable).any():
        of_verb, ones = questions.of_verb[comparable], np.ones(comparable.sum())
        right = [x.right[comparable] for x in answers]
        log_odds = [x.log_odds[comparable] for x in answers]
        yield from mean_effect_rows(CLOZE, compared, right, of_verb, ones, *where)
        yield from mean_effect_rows(LOG_ODDS, compared, log_odds, of_verb, ones, *where)
        for change, drops in zip(compared, mean_effects(compared, right), strict=True):
            # The formula does not include the variance of draws.
            if len(change.changed) == len(change.other) == 1:
                churn = float(np.abs(drops).mean() - abs(drops.mean()))
                value = smallest_drop(churn, len(drops))
                yield Row(SMALLEST, value, change.layer, n=len(drops), axes=change.axes)


def log_p_of_words(
    context: ModelContext,
    passes: Sequence[ChangedPass],
    texts: Sequence[Text],
    words: Mapping[Text, Ints],
) -> tuple[list[Floats], Ints]:
    """Log-probability of each text's words in each pass, in nats, and the number of their pieces.

    Raises:
        NoHeadError: the model has no language-model head.
    """
    log_p = []
    for scores in _scores_by_pass(context, passes, texts, LossOfWords(words)):
        order = [scores.view.index[text] for text in texts]
        log_p.append(np.add.reduceat(scores.within_word, scores.first)[order])
        # Each pass reads the same texts, so any of them has their numbers of pieces.
        pieces = np.add.reduceat(scores.pieces, scores.first)[order]
    return log_p, pieces


def _scores_by_pass(
    context: ModelContext,
    passes: Sequence[ChangedPass],
    texts: Iterable[Text],
    collector: Collector,
) -> Iterator[ScoredStretches]:
    """The collector's scores in each pass, in order."""
    view = view_over(texts, "written")
    shard = single_shard(view)
    for _, arrays in read_passes(context, passes, view, collector):
        parts = {name: array.numpy() for name, array in arrays.items()}
        yield joined_token_scores(view, [shard], [parts])


def head_importance(context: ModelContext, questions: Questions) -> tuple[Floats, list[Estimate]]:
    """E|∂L/∂ξ| of each head, where ξ = 1 is a gate on its output (Michel et al. 2019, equation 2).

    Returns:
        shape (blocks, heads); and estimates in this order, whose intervals resample documents.
    """
    view, partition = view_over(questions.texts, "written"), questions.partition
    gradients = np.zeros((len(view.texts), context.model.n_layers, context.sites().n_heads))
    for shard, arrays in context.read(view, LossGradients(questions.words)):
        gradients[shard.index] = arrays[BY_HEAD].numpy()
    sizes = np.abs(gradients[[view.index[text] for text in questions.texts]])
    document, flat = partition.of_sentence[questions.of_text], sizes.reshape(len(sizes), -1)
    return sizes.mean(0), means(flat, document, partition.n, partition.clusters)
