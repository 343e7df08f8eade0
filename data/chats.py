"""Chats in a column of the user's own data: lists of messages with a role and a content."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from probes.data.sentence import bare

Messages = Sequence[dict[str, str]]

_PARTS = ("role", "content")


def chat_as_text(name: str, given: Any) -> str:
    """Messages as JSON, the only word of the sentence that stands for a chat.

    Args:
        name: name of the column.

    Raises:
        ValueError: they are no list of roles and contents, or there are none.
    """
    if not isinstance(given, list) or not given:
        raise ValueError(f"{name} is not a list of messages: {given!r:.60}; correct the row.")
    for number, message in enumerate(given, start=1):
        role, content = map(message.get, _PARTS) if isinstance(message, dict) else (None, None)
        if not isinstance(role, str) or not isinstance(content, str) or not bare(role):
            raise ValueError(
                f'message {number} of {name} is not {{"role": "…", "content": "…"}}: '
                f"{message!r:.60}; correct the row."
            )
    return json.dumps([{part: message[part] for part in _PARTS} for message in given])


def messages_of(text: str) -> Messages:
    """The messages of `chat_as_text`."""
    found: Messages = json.loads(text)
    return found


def contents_of(text: str) -> str:
    """The contents of all messages, a line for each, for who reads no template."""
    return "\n".join(message["content"] for message in messages_of(text))
