"""`python -m probes generate`: writes a language model's greedy answers to prompts.

A line of the file begins with the columns of a row, that of the prompt last. This tells what a
killed process left unfinished from a file of something else.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from probes.cli.arguments import RUN, add_setting, path_argument
from probes.common.errors import UserError, counted
from probes.common.files import require_parent, sha256, writing
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.compute.devices import MAP, pick_device
from probes.data.chats import chat_as_text
from probes.data.label_columns import words_of
from probes.data.labelled import read_table, require_columns
from probes.extraction.models.model_folders import GENERATION
from probes.extraction.reading.views import Text
from probes.run.inputs import LazyModel, find_models
from probes.run.settings import validate

_SETTINGS = ("device", "dtype", "load", "revision", "trust_remote_code", "offline")

_CHAT, _TEXT, _ANSWER, _MADE_BY = "messages", "continued_text", "answer", "generation"
"""Added columns: prompt and answer, as a chat or as a text; the answer; how it was made."""

_Line = dict[str, Any]


class PromptRow(NamedTuple):
    """A row with a prompt: file and line, all columns, and messages or a text."""

    name: str
    columns: dict[str, Any]
    prompt: Any

    @property
    def tools(self) -> Any:
        """Descriptions of tools beside messages."""
        return None if isinstance(self.prompt, str) else self.columns.get("tools")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("--model", required=True, metavar="M", help="a folder, a hub id or a GGUF file")
    files = ".jsonl, .json, .csv or .parquet file"
    add("--corpus", required=True, type=path_argument, metavar="FILE", help=f"prompts: a {files}")
    columns = parser.add_mutually_exclusive_group(required=True)
    add_setting(parser, "messages", columns)
    text = "column of prompts: what a user says; without a chat template, texts to continue"
    columns.add_argument("--text", metavar="COLUMN", help=text)
    limit = "most tokens of an answer (default: 128)"
    add("--max-new-tokens", type=int, default=128, metavar="N", help=limit)
    add("-o", "--output", type=path_argument, required=True, metavar="FILE", help="a .jsonl file")
    for name in ("field", *_SETTINGS):
        add_setting(parser, name)


def run(options: argparse.Namespace) -> int:
    """Append the answers that the file lacks, each as soon as it is made.

    Raises:
        UserError: a prompt cannot be used, the model cannot answer, or the file has other lines.
    """
    output: Path = options.output
    if output.suffix != ".jsonl":
        raise UserError(f"-o {output}: the name must end in .jsonl.")
    if options.max_new_tokens < 1:
        raise UserError(f"--max-new-tokens {options.max_new_tokens}: give a number of at least 1.")
    require_parent(output)
    rows = list(_prompt_rows(options))
    config = validate({"twins": 0, **{name: getattr(options, name) for name in _SETTINGS}})
    (model,) = find_models([options.model], config)
    settings = model.source.folder / GENERATION
    made_by = {
        "model": model.source.name,
        "digest": model.source.digest[:16],
        "dtype": model.dtype,
        "device": MAP if config.device == MAP else pick_device(config.device).type,
        "max_new_tokens": options.max_new_tokens,
        GENERATION: sha256(settings)[:16] if settings.is_file() else "",
    }
    with locked(output.with_name(output.name + SUFFIX), waiting=f"for the writer of {output}"):
        lines = _stored_lines(output, rows, made_by)
        if len(lines) < len(rows):
            for line in _new_lines(rows, len(lines), model, made_by):
                with writing(output), output.open("ab", buffering=0) as file:
                    file.write(_as_json(line))
                lines.append(line)
    facts = [line[_MADE_BY] for line in lines]
    print(
        f"{output}: {counted(len(facts), 'answer')}, {sum(not x['ended'] for x in facts):,} cut at "
        f"{options.max_new_tokens} tokens, {sum(not x['same_tokens'] for x in facts):,} with other "
        "tokens when they are read again"
    )
    column = f"--messages {_CHAT}" if _CHAT in lines[0] else f"--text {_TEXT}"
    print(f"add a label, then: {RUN} --model {options.model} --corpus {output} {column} --label …")
    return 0


def _prompt_rows(options: argparse.Namespace) -> Iterator[PromptRow]:
    path, column = options.corpus, options.messages or options.text
    if path.suffix.lower() not in (".jsonl", ".json", ".csv", ".parquet"):
        raise UserError(f"--corpus {path}: give a .jsonl, .json, .csv or .parquet file.")
    table, numbers = read_table(path, options.field)
    flag = f"--{'messages' if options.messages else 'text'} {column}"
    require_columns(table, {column: flag}, str(path), path.suffix.lower() == ".csv")
    for added in sorted({_CHAT, _TEXT, _ANSWER, _MADE_BY} & table.keys() - {options.messages}):
        raise UserError(f"{path}: has a column {added}, which would be overwritten; rename it.")
    for i, prompt in enumerate(table[column]):
        name = f"{path}, line {numbers[i]}" if numbers else f"{path}, row {i + 1}"
        columns = {key: values[i] for key, values in table.items() if key != column}
        row = PromptRow(name, {**columns, column: prompt}, prompt)
        try:
            if options.text:
                words_of(prompt, column, False)
            elif chat_as_text(column, prompt, row.tools) and prompt[-1]["role"] == "assistant":
                raise ValueError(f"{column} ends with an answer; remove it.")
        except ValueError as error:
            raise UserError(f"{name}: {error}") from error
        yield row


def _stored_lines(path: Path, rows: Sequence[PromptRow], made_by: dict[str, Any]) -> list[_Line]:
    """The lines of a file, which answer the first rows; an unfinished one is removed.

    Raises:
        UserError: they answer something else, or were made in another way.
    """
    if not path.exists():
        return []
    with writing(path):
        *texts, unfinished = path.read_bytes().split(b"\n")
    lines = []
    for number, text in enumerate([*texts, unfinished]):
        is_whole = number < len(texts)
        row = rows[number] if number < len(rows) else None
        # Without the closing brackets of prompt and line, which the answer follows.
        start = _as_json(row.columns)[:-3] if row else b"\n"
        stored: dict[str, Any] = {}
        if row and is_whole and text.startswith(start):
            with suppress(ValueError):
                lines.append(json.loads(text))
                if _as_json(_question(lines[-1], row)) == _as_json(row.columns):
                    stored = lines[-1].get(_MADE_BY, {})
        if not (stored if is_whole else start.startswith(text) or text.startswith(start)):
            name = row.name if row else f"a prompt: there are only {len(rows):,}"
            raise UserError(
                f"{path}, line {number + 1}: is no answer to {name}; name another -o, or delete "
                "the file."
            )
        for key, value in made_by.items() if is_whole else ():
            if stored.get(key) != value:
                raise UserError(
                    f"{path}, line {number + 1}: was made with {key} {stored.get(key)}, not "
                    f"{value}; name another -o, or delete the file."
                )
    if unfinished:
        with writing(path), path.open("r+b") as file:
            file.truncate(sum(len(text) + 1 for text in texts))
    return lines


def _question(line: _Line, row: PromptRow) -> _Line:
    """The columns of the row that a line answers: a longer prompt may begin as the row's does."""
    columns = {name: line.get(name) for name in row.columns}
    if _CHAT in columns:
        columns[_CHAT] = line[_CHAT][:-1]
    return columns


def _new_lines(
    rows: Sequence[PromptRow], n_stored: int, model: LazyModel, made_by: dict[str, Any]
) -> Iterator[_Line]:
    """Lines with the answers to the rows after the first `n_stored`.

    Raises:
        UserError: the model cannot answer, or a prompt is too long.
    """
    from probes.extraction.reading.greedy_answers import GreedyDecoder

    limit: int = made_by["max_new_tokens"]
    encoder = model.language_model
    decoder = GreedyDecoder(encoder)
    has_template = encoder.words.chats.exists
    prompts: list[Any] = []
    prompt_ids: list[list[int]] = []
    too_long: list[str] = []
    for row in rows:
        said = [{"role": "user", "content": row.prompt}]
        prompts += [said if has_template and isinstance(row.prompt, str) else row.prompt]
        try:
            prompt_ids += [decoder.ids(_text_of(prompts[-1], row.tools))]
        except UserError as error:
            raise UserError(f"{row.name}: {error}") from error
        if len(prompt_ids[-1]) + limit > encoder.info.window:
            too_long += [f"{row.name} with {len(prompt_ids[-1]):,} tokens"]
    if too_long:
        raise UserError(
            f"{counted(len(too_long), 'prompt')} of {len(rows):,} (first: {too_long[0]}): the "
            f"window of {encoder.info.window:,} tokens has no room for {limit:,} more; shorten or "
            "remove them, or lower --max-new-tokens."
        )
    with progress.bar("answers", len(rows) - n_stored, "answer"):
        for row, prompt, asked in [*zip(rows, prompts, prompt_ids, strict=True)][n_stored:]:
            text, ids, ended = decoder.answer(asked, limit)
            is_chat, same = isinstance(prompt, list), False
            answered = (
                [*prompt, {"role": "assistant", "content": text}] if is_chat else prompt + text
            )
            with suppress(UserError):  # an answer may contain the letters of a special token
                same = decoder.ids(_text_of(answered, row.tools))[: len(ids)] == ids
            facts = {**made_by, "ended": ended, "same_tokens": same}
            column = _CHAT if is_chat else _TEXT
            yield {**row.columns, column: answered, _ANSWER: text, _MADE_BY: facts}
            progress.advance()


def _text_of(prompt: Any, tools: Any) -> Text:
    """Messages or a text, as a model reads them."""
    is_chat = isinstance(prompt, list)
    word = chat_as_text(_CHAT, prompt, tools) if is_chat else prompt
    return Text((word,), (0, 1), written=True, chat=is_chat)


def _as_json(columns: _Line) -> bytes:
    text = json.dumps(columns, ensure_ascii=False, default=str) + "\n"
    return text.encode(errors="backslashreplace")  # half of a surrogate pair, as JSON writes it
