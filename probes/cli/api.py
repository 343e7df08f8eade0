"""The Python entry points: `probes.run_probes` and `probes.surprisal`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from probes.cli.results import Results
from probes.cli.run import run_corpora
from probes.common.errors import UserError, printable
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.data.in_memory import NAME, in_memory, is_in_memory, tables_in
from probes.data.sources import CorpusRequest
from probes.run.config import RunConfig
from probes.run.inputs import LazyModel, find_models
from probes.run.settings import takes_settings, validate

if TYPE_CHECKING:
    import pandas as pd

    from probes.cli.setting_types import RunSettings


@takes_settings()
def run_probes(
    model: Any,
    tokenizer: Any = None,
    *,
    name: str | None = None,
    quiet: bool = False,
    verbose: bool = False,
    **settings: Unpack[RunSettings],
) -> Results:
    """Probe one or more models.

    Args:
        model: one or several names, as for `--model`; or a transformers model in memory with its
            tokenizer, as two arguments or as a pair.
        tokenizer: tokenizer of a model in memory.
        name: name of a model in memory in tables.
        quiet: show warnings only.
        verbose: show details.
        **settings: flags of `run_probes.py`, such as ``corpus="sample"``, ``tasks="pos,depth"`` or
            ``tasks=("pos", "depth")``, ``seeds=3``. A corpus may also be a `probes.Corpus`, a list
            of `probes.Sentence`, a table with the columns of a labelled table (a pandas data frame,
            a `datasets.Dataset`, or a dict of lists), a dict of these by split (`DatasetDict`), or
            a list of texts with labels: ``[("a text", "a label"), …]``.

    Returns:
        the results, which are also written to the folder `output`.

    With ``workers=2`` or more, further processes make the same run from its settings: what a script
    or notebook defines itself is refused.

    Raises:
        UserError: something that the caller can correct.
    """
    run_settings: dict[str, Any] = dict(settings)
    corpus = run_settings.pop("corpus") if is_in_memory(run_settings.get("corpus")) else None
    tables = None if corpus is None else tables_in(corpus)
    # Pairs of a text and its label name no columns.
    if isinstance(corpus, (list, tuple)) and tables is not None:
        run_settings = {"text": "text", "label": "label", **run_settings}
    config = validate(run_settings)
    with progress.verbosity(quiet=quiet, verbose=verbose):
        if corpus is not None:
            _refuse_workers(config, "a corpus")
            if tables is not None:
                from probes.data.labelled import find_columns

                request = CorpusRequest((NAME,), **config.corpus_request)
                source = find_columns(NAME, tables, request)
            else:
                source = in_memory(corpus, config.limit, config.drop_overlap, config.split_by)
            config = config.model_copy(update={"corpus": (source.name,)})
        models = models_of(model, tokenizer, name, config)
        if corpus is None:
            source = find_corpus(*config.tested, **config.corpus_request)
        # A model in memory keeps its type.
        return run_corpora(models[0].config, source, models)


def models_of(model: Any, tokenizer: Any, name: str | None, config: RunConfig) -> list[LazyModel]:
    """The models of a run, with random twins of models given by name.

    Raises:
        UserError: they are neither names nor a model with its tokenizer.
    """
    names = [model] if isinstance(model, (str, os.PathLike)) else model
    if isinstance(names, (list, tuple)) and all(isinstance(n, (str, os.PathLike)) for n in names):
        if name is not None:
            raise UserError(f"name={name!r}: only for a model in memory; leave it out.")
        if tokenizer is not None:
            raise UserError("tokenizer=…: only for a model in memory; leave it out.")
        return find_models([os.fspath(n) for n in names], config)
    if tokenizer is None and isinstance(model, (list, tuple)) and len(model) == 2:
        model, tokenizer = model
    return [_in_memory(model, tokenizer, name, config)]


def _refuse_workers(config: RunConfig, input_name: str) -> None:
    if config.workers > 1 or config.engine == "ray":
        setting = "engine='ray'" if config.engine == "ray" else f"workers={config.workers}"
        raise UserError(
            f"{setting}: workers cannot read {input_name} in memory; save it and give its path, or "
            f"leave {setting.partition('=')[0]} out."
        )


def _in_memory(model: Any, tokenizer: Any, name: str | None, config: RunConfig) -> LazyModel:
    """A model in memory as a model to probe; the settings get its dtype."""
    _refuse_workers(config, "a model")
    if config.load:
        raise UserError(f"load={config.load}: the model is in memory; give its folder instead.")
    if not hasattr(model, "config") or not hasattr(model, "dtype"):
        raise UserError(
            f"run_probes() takes a name, several names, or a transformers model with its "
            f"tokenizer, not a {type(model).__name__}."
        )
    if not callable(tokenizer):
        raise UserError(
            "run_probes(): a model in memory needs its tokenizer; give it as the second argument, "
            "such as AutoTokenizer.from_pretrained(NAME)."
        )
    parts = model.modules() if hasattr(model, "modules") else ()
    if any("quantized" in type(part).__module__ for part in parts):
        raise UserError(
            f"run_probes(): the {type(model).__name__} is quantised by torch.ao.quantization, "
            "whose vectors depend on the other texts of a batch; use torchao or bitsandbytes."
        )
    dtype = str(model.dtype).removeprefix("torch.")
    if config.dtype not in ("auto", dtype):
        raise UserError(f"dtype={config.dtype}: the model in memory is in {dtype}; convert it.")
    config = config.model_copy(update={"dtype": dtype})
    from probes.extraction.models.loaded_module import quantisation_of_loaded
    from probes.extraction.reading.encoder import Encoder

    label = printable(name or type(model).__name__)
    encoder = Encoder(model, tokenizer, name=label, device=config.device)
    if method := quantisation_of_loaded(model):
        encoder.notes["quantised weights"] = method
    return LazyModel.of(encoder, config)


def surprisal(
    model: Any,
    texts: Sequence[str],
    tokenizer: Any = None,
    *,
    by: Literal["token", "word"] = "token",
    word_ends: bool = True,
    **settings: Unpack[RunSettings],
) -> pd.DataFrame:
    """Surprisal of each token, or word, of some texts under a language model.

    Args:
        model: a name as for `--model`, or a transformers model in memory with its head.
        texts: texts as written.
        tokenizer: tokenizer of a model in memory.
        by: "token", or "word" for sums over the tokens of words between spaces. Words that share a
            token have one row.
        word_ends: count the end of a word as part of it, for causal models whose tokens begin with
            a space (Pimentel & Meister 2024; see `TokenScores`). Tokens alone are not changed.
        **settings: see `probes.run_probes`, such as ``device``, ``revision``.

    Returns:
        a frame with the number of the text, the number of the word in it, the token or word, and in
        nats: ``surprisal``, −log p, for a masked model with only this token masked (Salazar et al.
        2020); ``within_word``, with later tokens of the word masked as well (Kauf & Ivanova 2023).
        Both are equal if the model reads left to right. A first token without a start token before
        it has no value.

    Raises:
        UserError: the model has no language-model head, or a text is empty.
    """
    import pandas as pd

    from probes.extraction.reading.encoding import read
    from probes.extraction.reading.token_scores import TokenScores
    from probes.extraction.reading.views import Text, view_over

    if isinstance(texts, str) or not all(isinstance(x, str) and x.strip() for x in texts):
        raise UserError("surprisal(): give texts as a list of texts that are not empty.")
    config = validate({"twins": 0, **settings})
    (lazy,) = models_of(model, tokenizer, None, config)
    encoder = lazy.language_model
    words = [tuple(re.findall(r"\s*\S+(?:\s+$)?", text)) for text in texts]
    # Equal texts are in a view once, so scores are looked up by text.
    view = view_over((Text(x, (0, len(x)), written=True) for x in words), "written")
    of_text: dict[Text, list[tuple[Any, ...]]] = {}
    for shard, arrays in read(view, TokenScores(), encoder, config.batch_tokens):
        scores = zip(
            *(arrays[x].tolist() for x in ("log_p", "within_word", "word_ends")), strict=True
        )
        for text, pieces in zip(shard.texts, encoder.split(shard.texts), strict=True):
            numbers = np.repeat(np.arange(len(text.words)), np.diff(pieces.bounds)).tolist()
            tokens = encoder.words.tokens(pieces.ids)
            values = [next(scores) for _ in tokens]
            of_text[text] = [
                (word, token, -log_p, -within, -end)
                for word, token, (log_p, within, end) in zip(numbers, tokens, values, strict=True)
            ]
    rows = [
        (number, *row)
        for number, x in enumerate(words)
        for row in of_text[Text(x, (0, len(x)), written=True)]
    ]
    names = ["surprisal", "within_word"]
    frame = pd.DataFrame(rows, columns=["text", "word", "token", *names, "end"])
    ending = frame.pop("end")
    if by == "token":
        return frame
    if word_ends:
        frame[names] = frame[names].add(ending, axis=0)
    sums = frame.groupby(["text", "word"])[names].sum(min_count=1)
    # Words that share a token have one row, so a row reaches to the first word of the next one.
    ends = [*sums.index[1:], (len(words), 0)]
    forms = []
    for (text, word), (next_text, next_word) in zip(sums.index, ends, strict=True):
        end = next_word if next_text == text else len(words[text])
        forms.append("".join(words[text][word:end]).strip())
    sums.insert(0, "form", forms)
    return sums.reset_index()
