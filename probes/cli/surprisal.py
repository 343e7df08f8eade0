"""Surprisals of tokens and words from Python: `probes.surprisal`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from probes.cli.api import models_of
from probes.common.errors import UserError
from probes.engines.settings import validate

if TYPE_CHECKING:
    import pandas as pd


def surprisal(
    model: Any,
    texts: Sequence[str],
    tokenizer: Any = None,
    *,
    by: Literal["token", "word"] = "token",
    **settings: Any,
) -> pd.DataFrame:
    """How surprising each token, or word, of some texts is to a language model.

    Args:
        model: a name as `--model` takes it, or a model of transformers in memory with its head.
        texts: as they are written.
        tokenizer: that of a model in memory.
        by: a row for each token, or for each word between spaces, with the sums over its tokens.
            Words that share a token have one row.
        **settings: of `probes.run_probes`, such as ``device``, ``dtype``, ``revision``.

    Returns:
        a frame with the number of the text and of the word in it, the token or word, and in nats:
        ``surprisal``, −log p, of a masked model with this token alone masked (Salazar et al. 2020);
        ``within_word``, where the later tokens of its word are masked, too (Kauf & Ivanova 2023).
        Of a model that reads from left to right both are the same. A first token that nothing
        precedes, not even a start token, has none.

    Raises:
        UserError: the model has no language-model head, or a text is empty.
    """
    import pandas as pd

    from probes.extraction.encoding import read
    from probes.extraction.token_scores import TokenScores
    from probes.extraction.views import Text, view_over

    if isinstance(texts, str) or not all(isinstance(x, str) and x.strip() for x in texts):
        raise UserError("surprisal(): texts is a list of texts that are not empty.")
    config = validate({"twins": 0, **settings})
    (its,) = models_of(model, tokenizer, None, config)
    encoder = its.language_model
    words = [tuple(re.findall(r"\s*\S+(?:\s+$)?", text)) for text in texts]
    view = view_over((Text(each, (0, len(each)), written=True) for each in words), "written")
    of_text: dict[Text, list[tuple[Any, ...]]] = {}
    for shard, found in read(view, TokenScores(), encoder, config.batch_tokens):
        scores = zip(found["log_p"].tolist(), found["within_word"].tolist(), strict=True)
        for text, pieces in zip(shard.texts, encoder.split(shard.texts), strict=True):
            place = np.repeat(np.arange(len(text.words)), np.diff(pieces.bounds)).tolist()
            tokens = encoder.words.tokens(pieces.ids)
            own = [next(scores) for _ in tokens]
            of_text[text] = [
                (word, token, -log_p, -within)
                for word, token, (log_p, within) in zip(place, tokens, own, strict=True)
            ]
    rows = [
        (number, *row)
        for number, each in enumerate(words)
        for row in of_text[Text(each, (0, len(each)), written=True)]
    ]
    frame = pd.DataFrame(rows, columns=["text", "word", "token", "surprisal", "within_word"])
    if by == "token":
        return frame
    sums = frame.groupby(["text", "word"])[["surprisal", "within_word"]].sum(min_count=1)
    ends = [*sums.index[1:], (len(words), 0)]
    forms = []
    for (text, word), (next_text, next_word) in zip(sums.index, ends, strict=True):
        end = next_word if next_text == text else len(words[text])
        forms.append("".join(words[text][word:end]).strip())
    sums.insert(0, "form", forms)
    return sums.reset_index()
