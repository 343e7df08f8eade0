"""Messages of a run at work: a line for each model and corpus, and with `-v` for each step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from probes.common.errors import counted
from probes.common.terminal import progress
from probes.compute.devices import DType
from probes.data.sentence import Corpus
from probes.data.splits import worded_note
from probes.extraction.models.model_files import ModelSource
from probes.frames.record_validation import as_result
from probes.records.header import ModelRecord
from probes.records.record import Record
from probes.records.result import SCORES
from probes.statistics.partition import FEWEST, has_few
from probes.tasks.positions import Position

if TYPE_CHECKING:
    from probes.examples.examples import Examples
    from probes.extraction.reading.encoder import Encoder
    from probes.extraction.reading.vectors import StoredVectors
    from probes.extraction.reading.views import View

MANY_LABELS = 1000
"""Labels from which a run says that fits take long."""

MANY_UNKNOWN = 0.05
"""Share of words with the unknown token from which a run warns."""


def announce_model(encoder: Encoder, source: ModelSource, *, is_twin: bool = False) -> None:
    """Describe a model that has been loaded; of a twin that was not named, only with `-v`."""
    info = encoder.info
    if "remote code" in encoder.notes:
        progress.warn(
            f"--model {info.name} runs code from its own folder; its results record this",
            "remote code",
            folder=str(source.folder),
        )
    language = encoder.notes.get("language of all texts")
    say = progress.detail if is_twin else progress.say
    say(
        f"model   {info.name} · {info.architecture} · "
        f"{f'reads {language} · ' if language else ''}{counted(info.n_layers, 'layer')} × "
        f"{info.hidden_size} · {info.parameters / 1e6:.1f} M parameters · {encoder.device}",
        "model",
        **info.model_dump(),
    )


def announce_given(info: ModelRecord, source: ModelSource) -> None:
    """Describe vectors that were read from files."""
    of = f"{info.name} · vectors of {source.folder}"
    line = f"model   {of} · {counted(info.n_layers + 1, 'layer')} × {info.hidden_size}"
    progress.say(line, "model", **info.model_dump())


def announce_own_dtype(source: ModelSource, dtype: DType) -> None:
    """Say that a model does not run in float32, though nobody asked for another type."""
    progress.say(
        f"model   {source.name} runs in {dtype}, in which its checkpoint is stored; "
        "--dtype float32 runs it in float32",
        "own dtype",
        model=source.name,
        dtype=dtype,
    )


def announce_corpus(corpus: Corpus, group: str = "") -> None:
    """Describe a corpus, with a line for each of its notes; `group` as in `Source`."""
    sentences, words = corpus_counts(corpus)
    unit, alike = "sentences", "sentences, texts or examples"
    if of_texts := any(sentence.whole for sentence in corpus):
        unit = alike = "texts"
    counts = f"{per_split(sentences)} {unit} in {' / '.join(sentences)}"
    if corpus.items:
        counts = f"{len(corpus.items):,} items"
    progress.say(
        f"corpus  {' '.join(filter(None, (corpus.name, corpus.version)))} "
        f"({corpus.licence or 'licence not stated'}) · {counts}",
        "corpus",
        name=corpus.name,
        version=corpus.version,
        sentences=sentences,
        words=words,
        fingerprint=corpus.fingerprint,
    )
    for note, count in corpus.notes.items():
        said = worded_note(note, group, of_texts=of_texts)  # the record keeps it as it is
        progress.say(f"        {said}: {count:,}", "corpus note", what=note, count=count)
    documents = {sentence.document for sentence in corpus.splits.get("test", ())} - {""}
    if has_few(documents):
        n_docs = counted(len(documents), "named document or group", "named documents or groups")
        n_docs = f"{counted(len(documents), 'group')} ({group})" if group else n_docs
        progress.warn(
            f"{corpus.name}: {n_docs} in test; with fewer than {FEWEST} there are no intervals and "
            f"no tests, since {alike} of one may be alike; put more into test"
        )


def announce_task(examples: Examples) -> None:
    """Count a task's examples, labels and omissions."""
    task = examples.task
    counts = {split: len(part.examples) for split, part in examples.splits.items()}
    excluded = {split: dict(part.excluded) for split, part in examples.splits.items()}
    parts = [f"task    {task.name}", f"{per_split(counts)} examples"]
    if examples.classes:
        parts.append(f"{len(examples.classes):,} labels")
    if task.reading:
        parts.append(f"{task.reading}, {task.metric}")
    if unseen := examples.unseen("test"):
        have = counted(len(unseen), "test example has", "test examples have")
        parts.append(f"{have} a label that does not occur in train")
    if reasons := sorted({reason for counted in excluded.values() for reason in counted}):
        numbers = (per_split({s: n.get(r, 0) for s, n in excluded.items()}) for r in reasons)
        left_out = ", ".join(f"{n} {reason}" for n, reason in zip(numbers, reasons, strict=True))
        parts.append(f"left out: {left_out}")
    message = " · ".join(parts)
    many = len(examples.classes) >= MANY_LABELS
    say = progress.say if unseen or many or task.reading else progress.detail
    say(message, "task", task=task.name, examples=counts, excluded=excluded)
    if many:
        progress.say(
            f"        {len(examples.classes):,} labels: fits take time and memory in proportion. "
            "If these are names or numbers rather than classes, leave the task out; if many are "
            "rare, merge them",
            "many labels",
            task=task.name,
        )


def announce_tokens(position: Position, tokens: Sequence[str], first: int, last: int) -> None:
    """Show the first and the last token that are read, with three before and three after them."""
    before, after = tokens[max(0, first - 3) : first], tokens[last + 1 : last + 4]
    read = [tokens[first], "…", tokens[last]] if last - first > 1 else tokens[first : last + 1]
    excerpt = " ".join([*before, f"[{' '.join(read)}]", *after]).replace("\n", r"\n")
    progress.say(f"        {position.name} reads, in the first text, {excerpt}", "token read")


def announce_vectors(
    model: str,
    view: View,
    vectors: StoredVectors,
    n_layers: int,
    seconds: float,
    *,
    untokenized: bool,
) -> None:
    """Describe the vectors of a view's words or texts, read from the store or just encoded.

    Args:
        model: its name, if there are several.
        untokenized: whether no tokenizer made them, so that nothing is known of [UNK].
    """
    n_rows, about = vectors.manifest["rows"], vectors.encoding
    of = f"{model} · " if model else ""
    unit, unknown = "words", f"{about.unknown_words:,} of {n_rows:,} words contain [UNK]"
    if view.texts[0].written:
        unit, unknown = "texts", f"{about.unknown_words:,} of {n_rows:,} texts are mostly [UNK]"
        if long := about.texts_in_several_windows:
            unknown += f" · {long:,} longer than the window, pooled over several"
    say = progress.say if about.texts_in_several_windows else progress.detail
    say(
        f"vectors {of}{view.name} view · {n_rows:,} {unit} × {counted(n_layers, 'layer')}, "
        f"{about.storage} · {'' if untokenized else f'{unknown} · '}{seconds:.1f} s",
        "vectors",
        view=view.name,
        rows=n_rows,
        unknown=about.unknown_words,
        seconds=seconds,
    )
    if about.unknown_words >= MANY_UNKNOWN * n_rows:
        progress.warn(
            f"{unknown} ({about.unknown_words / n_rows:.0%}), and vectors say little of them: "
            "the tokenizer lacks their script or symbols; choose a model trained on such text"
        )


def announce_record(record: Record, title: str, path: Path) -> None:
    """One line for a record that is made: the best layer of scores, and the time taken."""
    parts = [f"done    {title}"]
    fields: dict[str, object] = {"model": record.model.name, "measurement": record.measurement}
    if record.measurement == SCORES:
        result = as_result(record, path)
        best = result.best_number
        parts.append("no best layer" if best is None else f"best layer {best}")
        fields |= {"task": result.task.name, "probe": result.probe.family, "best_layer": best}
    parts.append(f"{sum(record.seconds.values()):.1f} s")
    progress.detail(" · ".join(parts), "done", **fields, seconds=record.seconds, result=str(path))


def per_split(counts: dict[str, int]) -> str:
    """Counts of train, dev and test as one text: ``12,544 / 2,001 / 2,077``."""
    return " / ".join(f"{count:,}" for count in counts.values())


def corpus_counts(corpus: Corpus) -> tuple[dict[str, int], dict[str, int]]:
    """Sentences and words by split."""
    sentences = {split: len(part) for split, part in corpus.splits.items()}
    words = {split: sum(map(len, part)) for split, part in corpus.splits.items()}
    return sentences, words
