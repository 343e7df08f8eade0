"""Chats in a column of the user's own data: lists of messages with a role and a content."""

from __future__ import annotations

import json
from typing import Any

from probes.data.sentence import bare

Message = dict[str, Any]

_PARTS = ("role", "content")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def chat_as_text(name: str, messages: Any, tools: Any = None) -> str:
    """Messages as JSON, the only word of the sentence that stands for a chat.

    All keys of a message are kept but those without a value, which transformers leaves out.

    Args:
        name: name of the column.
        tools: descriptions of the tools that may be called, or these as JSON.

    Raises:
        ValueError: they are no list of roles and contents, or there are none.
    """
    if not isinstance(messages, list) or not messages:
        raise ValueError(f"{name} is not a list of messages: {messages!r:.60}; correct the row.")
    chat: Any = []
    for number, message in enumerate(messages, start=1):
        fields = message if isinstance(message, dict) else {}
        # Templates may write a message as it is, in the order of its keys.
        keys = fields if fields.keys() - _PARTS else _PARTS
        fields = {key: fields[key] for key in keys if fields.get(key) is not None}
        if isinstance(parts := fields.get("content"), list):
            fields["content"] = [_text_part(part) for part in parts]
        elif parts is None and further_keys(fields):  # it only calls tools
            parts = ""
        role = fields.get("role")
        if not isinstance(role, str) or not isinstance(parts, str | list) or not bare(role):
            raise ValueError(
                f'message {number} of {name} is not {{"role": "…", "content": "…"}}: '
                f"{message!r:.60}; correct the row."
            )
        chat.append(fields)
    try:
        tools = json.loads(tools) if tools and isinstance(tools, str) else tools
        if tools not in _EMPTY and tools == tools:  # pandas writes NaN for none
            if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
                raise ValueError(f"tools is not a list of objects: {tools!r:.60}")
            chat = {"messages": chat, "tools": tools}
        _json_text(chat).encode()  # half of a surrogate pair is no character
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}, with tools beside it: {error}; correct the row.") from error
    return json.dumps(chat)


def _text_part(part: Any) -> Message:
    """A part of a content, which must be text."""
    fields = {x: part[x] for x in part if part[x] is not None} if isinstance(part, dict) else {}
    if fields.get("type", "text") != "text" or not isinstance(fields.get("text"), str):
        raise ValueError(f"part of a content that is not text: {part!r:.60}; leave it out.")
    return fields


def chat_of(text: str) -> tuple[list[Message], list[Message] | None]:
    """The messages of `chat_as_text`, and the tools if there are any."""
    chat = json.loads(text)
    return (chat, None) if isinstance(chat, list) else (chat["messages"], chat["tools"])


def further_keys(message: Message) -> list[str]:
    """The keys of a message beside role and content that are not empty."""
    return [key for key, value in message.items() if key not in _PARTS and value not in _EMPTY]


def has_further_keys(chat: str) -> bool:
    """Whether a chat is more than roles and contents."""
    messages, tools = chat_of(chat)
    return bool(tools) or any(map(further_keys, messages))


def message_text(message: Message) -> str:
    """The content of a message as one text."""
    content = message.get("content", "")
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def texts_of(chat: str) -> list[str]:
    """Texts of the messages, each with the JSON of its further keys; last the JSON of the tools."""
    messages, tools = chat_of(chat)
    texts = [
        "\n".join([message_text(x), *(_json_text(x[key]) for key in further_keys(x))])
        for x in messages
    ]
    return [*texts, _json_text(tools)] if tools else texts


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
