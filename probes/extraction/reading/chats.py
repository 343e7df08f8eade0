"""Chats and other texts with special tokens, as a tokenizer's chat template writes them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from probes.common.errors import UserError
from probes.data.chats import Message, chat_of, further_keys, message_text
from probes.extraction.reading.chat_process import ChatProcess

_MARKER = "\ue000"
"""Stands for the content of a message. Unicode assigns it to no character."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text for a tokenizer, special tokens included.

    Attributes:
        roles: role of each message; empty for a text that was not made from messages.
        spans: first letter and end of each message's content.
        unwritten: keys of the messages that the template does not write, and "tools".
    """

    text: str
    roles: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    unwritten: tuple[str, ...] = ()

    def span_of(self, role: str) -> tuple[int, int] | None:
        """First letter and end of the last message of a role; None if it has no content."""
        spans = [span for name, span in zip(self.roles, self.spans, strict=True) if name == role]
        start, end = spans[-1] if spans else (0, 0)
        return (start, end) if end > start else None


def splitting_alone(backend: Tokenizer) -> dict[str, Any]:
    """A tokenizer as JSON, without truncation, padding, tokens around a text, and dropout."""
    spec: dict[str, Any] = json.loads(backend.to_str())
    spec.update(truncation=None, padding=None, post_processor=None)
    if spec["model"].get("dropout"):
        spec["model"]["dropout"] = None
    return spec


class ChatTemplate:
    """A tokenizer's chat template, and how the tokenizer splits what it writes.

    Args:
        tokenizer: a fast tokenizer of transformers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._process = tokenizer, ChatProcess()
        self._rendered: dict[str, Rendered] = {}

    @cached_property
    def backend(self) -> Tokenizer:
        """The tokenizer, which finds special tokens and puts none around a text."""
        return Tokenizer.from_str(json.dumps(splitting_alone(self._tokenizer.backend_tokenizer)))

    @property
    def exists(self) -> bool:
        """Whether the tokenizer has a template."""
        return bool(self._tokenizer.chat_template)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the template."""
        return hashlib.sha256(repr(self._tokenizer.chat_template).encode()).hexdigest()

    @cached_property
    def special(self) -> tuple[str, ...]:
        """The special tokens that a template, or a rendered chat, contains; none without it."""
        if not self.exists:
            return ()
        question = [{"role": "user", "content": _MARKER}]
        answered = [*question, {"role": "assistant", "content": _MARKER}]
        template = self._tokenizer.chat_template
        # What it writes only with tools is in its source, which may name tokens by variables.
        text = "".join(template.values() if isinstance(template, dict) else [template])
        for chat in (question, answered):
            with suppress(UserError):  # which may be no chats for it
                text += next(self._written_texts(chat))
        added = self._tokenizer.added_tokens_decoder.values()
        return tuple(x.content for x in added if x.special and x.content in text)

    def require_plain(self, text: str, label: str) -> None:
        """Check that a text has no special tokens of the template.

        Args:
            label: names the text in the error.

        Raises:
            UserError: it has one.
        """
        for name in self.special:
            if name in text:
                raise UserError(
                    f"{label} contains {name}, a special token of the chat template: {text!r:.60}. "
                    "Give the messages that it was made from with --messages, or --special-tokens "
                    "to treat special tokens in texts as special."
                )

    def render(self, chat: str) -> Rendered:
        """Write a chat with the template, and begin an answer if the last message is none.

        The content of a message ends where the same text with a letter after the content differs,
        and a key is not written if the text is the same without it, so that nothing has to be known
        of the template.

        Args:
            chat: see `probes.data.chats.chat_as_text`.

        Raises:
            UserError: there is no template, it refuses the messages, or it leaves one out.
        """
        if not self.exists:
            raise UserError(
                "--messages: this model's tokenizer has no chat template; choose a model that was "
                "trained on chats, or give texts with --text."
            )
        if chat not in self._rendered:
            self._rendered[chat] = self._render(*chat_of(chat))
        return self._rendered[chat]

    def _render(self, messages: list[Message], tools: list[Message] | None) -> Rendered:
        changes = []
        as_json = json.dumps([messages, tools], ensure_ascii=False)
        marker = next(x for x in map(chr, range(ord(_MARKER), sys.maxunicode)) if x not in as_json)
        for number, message in enumerate(messages):
            content = message.get("content", "")
            longer: Any = f"{content}{marker}"
            if parts := isinstance(content, list):
                *first, last = content or [{"type": "text", "text": ""}]
                longer = [*first, {**last, "text": last["text"] + marker}]
            changes += [(number, {**message, "content": longer})]
            replaced = [{"type": "text", "text": marker}] if parts else marker
            changes += [(number, {**message, "content": replaced})]
            changes += [(number, _without_key(message, key)) for key in further_keys(message)]
        answers = self._written_texts(messages, tools, changes)
        text, spans, unwritten = next(answers), [], []
        for number, message in enumerate(messages, start=1):
            if isinstance(message.get("content"), list) and str(message["content"]) in text:
                raise UserError(
                    "--messages: the chat template writes parts of a content as Python does; give "
                    f"the content of message {number} as a string."
                )
            longer, replaced, further = next(answers), next(answers), further_keys(message)
            absent = [key for key in further if next(answers) == text]
            unseen = longer == replaced == text
            if unseen and absent == further:
                raise UserError(f"--messages: the chat template leaves out message {number}.")
            content = message_text(message).strip()
            unwritten += [*absent, *(["content"] if content and unseen else ())]
            # In the place of an empty content, the template may write another thing.
            spans.append(
                _content_span(content, text, longer, replaced, marker) if content else (0, 0)
            )
        with suppress(UserError):  # a template that needs tools writes them
            if tools and [text] == list(self._written_texts(messages, None)):
                unwritten += ["tools"]
        roles = tuple(message["role"] for message in messages)
        return Rendered(text, roles, tuple(spans), tuple(unwritten))

    def _written_texts(
        self,
        messages: list[Message],
        tools: list[Message] | None = None,
        changes: Sequence[tuple[int, Message]] = (),
    ) -> Iterator[str]:
        """Yield the text of a chat, and of the chat with other messages in their places.

        The text is empty if the template refuses a message that was changed.
        """
        changes = [(0, messages[0]), *changes]
        try:
            answers = self._process.write(
                messages,
                changes,
                tools=tools,
                chat_template=self._tokenizer.get_chat_template(tools=tools),
                add_generation_prompt=messages[-1]["role"] != "assistant",
                **self._tokenizer.special_tokens_map,
            )
            for (number, message), (ok, text) in zip(changes, answers, strict=False):
                if not ok and message is messages[number]:
                    raise ValueError(text)
                yield text if ok else ""
        except ValueError as error:
            raise UserError(
                f"--messages: the chat template refuses {json.dumps(messages)[:60]}… ({error}); "
                "correct the messages, or the template."
            ) from error


def _without_key(message: Message, key: str) -> Message:
    return {name: value for name, value in message.items() if name != key}


def _content_span(
    content: str, text: str, longer: str, replaced: str, marker: str
) -> tuple[int, int]:
    """First letter and end of a content; 0 and 0 if it is not found.

    Args:
        longer, replaced: the text with the letter `marker` after the content, and in its place;
            empty if the template refuses it.
    """
    changed_text = next((x for x in (longer, replaced) if x not in ("", text)), "")
    end = len(text) - _n_shared_letters(text[::-1], changed_text[::-1])
    before = longer.rpartition(marker)[0].replace(marker, "")
    if before and text.startswith(before):  # what follows may depend on the content
        end = min(end, len(before))
    start = text.rfind(content, 0, end)
    if not changed_text:
        return (start, start + len(content)) if start >= 0 else (0, 0)
    return (start if start >= 0 else max(0, end - len(content))), end


def _n_shared_letters(first: str, second: str) -> int:
    """The number of letters with which both begin."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
