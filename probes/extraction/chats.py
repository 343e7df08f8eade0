"""Chats and other texts with special tokens, as a tokenizer's chat template writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from probes.common.errors import UserError
from probes.common.origin import described
from probes.data.chats import Messages

_OTHER = "\ue000"
"""Stands for the content of a message. Unicode assigns it to no character."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text for a tokenizer, special tokens included.

    Attributes:
        roles: role of each message; empty for a text that was not made from messages.
        spans: first letter and end of each message's content.
    """

    text: str
    roles: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def end_of(self, role: str) -> int | None:
        """The last letter of the last message of a role; None if there is none."""
        found = [span for name, span in zip(self.roles, self.spans, strict=True) if name == role]
        start, end = found[-1] if found else (0, 0)
        return end - 1 if end > start else None


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
        self._tokenizer = tokenizer

    @cached_property
    def backend(self) -> Tokenizer:
        """The tokenizer, which finds special tokens and puts none around a text."""
        return Tokenizer.from_str(json.dumps(splitting_alone(self._tokenizer.backend_tokenizer)))

    @cached_property
    def special(self) -> tuple[str, ...]:
        """The special tokens that a rendered chat contains; none without a template."""
        if not self._tokenizer.chat_template:
            return ()
        asked = [{"role": "user", "content": _OTHER}]
        answered = [*asked, {"role": "assistant", "content": _OTHER}]
        text = self._written(asked, True) + self._written(answered, False)
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

    def render(self, messages: Messages) -> Rendered:
        """Write messages with the template, and begin an answer if the last message is none.

        The content of a message is what differs between the text and the same text with another
        content, so that nothing has to be known of the template.

        Raises:
            UserError: there is no template, it refuses the messages, or it leaves one out.
        """
        if not self._tokenizer.chat_template:
            raise UserError(
                "--messages: this model's tokenizer has no chat template; choose a model that was "
                "trained on chats, or give texts with --text."
            )
        begun = messages[-1]["role"] != "assistant"
        text, spans = self._written(messages, begun), []
        for number, message in enumerate(messages):
            changed = [*messages]
            changed[number] = {**message, "content": _OTHER}
            other = self._written(changed, begun)
            if other == text:
                raise UserError(f"--messages: the chat template leaves out message {number + 1}.")
            start = _shared(text, other)
            after = _shared(text[start:][::-1], other[start:][::-1])
            spans.append((start, len(text) - after))
        return Rendered(text, tuple(message["role"] for message in messages), tuple(spans))

    def _written(self, messages: Messages, begun: bool) -> str:
        from jinja2 import TemplateError

        try:
            text: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=begun
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise UserError(
                f"--messages: the chat template refuses {json.dumps(messages)[:60]}… "
                f"({described(error)}); correct the messages."
            ) from error
        return text


def _shared(one: str, other: str) -> int:
    """The number of letters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(one), len(other)))
