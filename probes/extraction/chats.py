"""Chats and other texts with special tokens, as a tokenizer's chat template writes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from probes.common.errors import UserError
from probes.data.chats import Message, chat_of, content_of, further_keys
from probes.extraction.chat_process import ChatProcess

_OTHER = "\ue000"
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
        found = [span for name, span in zip(self.roles, self.spans, strict=True) if name == role]
        start, end = found[-1] if found else (0, 0)
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
        tokenizer: of transformers, a fast one.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._process = tokenizer, ChatProcess()
        self._rendered: dict[str, Rendered] = {}

    @cached_property
    def backend(self) -> Tokenizer:
        """The tokenizer, which finds special tokens and puts none around a text."""
        return Tokenizer.from_str(json.dumps(splitting_alone(self._tokenizer.backend_tokenizer)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the template."""
        return hashlib.sha256(repr(self._tokenizer.chat_template).encode()).hexdigest()

    @cached_property
    def special(self) -> tuple[str, ...]:
        """The special tokens that a rendered chat contains; none without a template."""
        if not self._tokenizer.chat_template:
            return ()
        asked = [{"role": "user", "content": _OTHER}]
        answered = [*asked, {"role": "assistant", "content": _OTHER}]
        text = "".join([*self._written(asked), *self._written(answered)])
        added = self._tokenizer.added_tokens_decoder.values()
        return tuple(x.content for x in added if x.special and x.content in text)

    def require_plain(self, text: str, what: str) -> None:
        """Check that a text has no special tokens of the template.

        Args:
            what: names the text in the error.

        Raises:
            UserError: it has one.
        """
        for name in self.special:
            if name in text:
                raise UserError(
                    f"{what} contains {name}, a special token of the chat template: {text!r:.60}. "
                    "Give the messages that it was made from with --messages, or --special-tokens "
                    "if special tokens are meant."
                )

    def render(self, chat: str) -> Rendered:
        """Write a chat with the template, and begin an answer if the last message is none.

        The content of a message is what differs between the text and the same text with another
        content, and a key is not written if the text is the same without it, so that nothing has to
        be known of the template.

        Args:
            chat: see `probes.data.chats.chat_as_text`.

        Raises:
            UserError: there is no template, it refuses the messages, or it leaves one out.
        """
        if not self._tokenizer.chat_template:
            raise UserError(
                "--messages: this model's tokenizer has no chat template; choose a model that was "
                "trained on chats, or give texts with --text."
            )
        if chat not in self._rendered:
            self._rendered[chat] = self._render(*chat_of(chat))
        return self._rendered[chat]

    def _render(self, messages: list[Message], tools: list[Message] | None) -> Rendered:
        changes = []
        for number, message in enumerate(messages):
            parts = isinstance(message.get("content"), list)
            other = {**message, "content": [{"type": "text", "text": _OTHER}] if parts else _OTHER}
            changes += [(number, other)]
            changes += [(number, _without(message, key)) for key in further_keys(message)]
        answers = self._written(messages, tools, changes)
        text, spans, unwritten = next(answers), [], []
        for number, message in enumerate(messages, start=1):
            if isinstance(message.get("content"), list) and str(message["content"]) in text:
                raise UserError(
                    "--messages: the chat template writes parts of a content as Python does; give "
                    f"the content of message {number} as a string."
                )
            changed, further = next(answers), further_keys(message)
            absent = [key for key in further if next(answers) == text]
            if changed == text and absent == further:
                raise UserError(f"--messages: the chat template leaves out message {number}.")
            has_content = bool(content_of(message).strip())
            unwritten += [*absent, *["content"] * (has_content and changed == text)]
            start = _shared(text, changed)
            after = _shared(text[start:][::-1], changed[start:][::-1])
            # In the place of an empty content, the template may write another thing.
            spans.append((start, len(text) - after) if has_content else (0, 0))
        if tools and [text] == list(self._written(messages, None)):
            unwritten += ["tools"]
        roles = tuple(message["role"] for message in messages)
        return Rendered(text, roles, tuple(spans), tuple(unwritten))

    def _written(
        self,
        messages: list[Message],
        tools: list[Message] | None = None,
        changes: Sequence[tuple[int, Message]] = (),
    ) -> Iterator[str]:
        """Yield the text of a chat, and of the chat with other messages in their places.

        The text is empty if the template refuses a message without one of its keys.
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
                if not ok and message.keys() >= messages[number].keys():
                    raise ValueError(text)
                yield text if ok else ""
        except ValueError as error:
            raise UserError(
                f"--messages: the chat template refuses {json.dumps(messages)[:60]}… ({error}); "
                "correct the messages, or the template."
            ) from error


def _without(message: Message, key: str) -> Message:
    return {name: value for name, value in message.items() if name != key}


def _shared(one: str, other: str) -> int:
    """The number of letters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(one), len(other)))
