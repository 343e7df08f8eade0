"""Names of models: hub ids with a revision, and random twins."""

from __future__ import annotations

import re

from probes.common.errors import UserError

RANDOM = "random:"
"""Prefix of a model name for a random twin; `random-1:` is another one."""

VECTORS = "vectors:"
"""Prefix of a model name for vectors in files."""

RANDOM_NAME = re.compile(r"random(?:-(?P<seed>[1-9][0-9]{0,8}))?:(?P<model>.*)", re.DOTALL)

_REVISION = re.compile(r"@\S+")


def random_prefix(seed: int) -> str:
    """The prefix of the name of a random twin with this seed."""
    return f"random-{seed}:" if seed else RANDOM


def pretrained_name(name: str) -> str:
    """The name of a random twin's pretrained model; any other name unchanged."""
    match = RANDOM_NAME.fullmatch(name)
    return match["model"] if match else name


def is_twin_name(name: str, model: str) -> bool:
    """Whether a name is that of a random twin of `model`, which may be one of its revisions."""
    base = pretrained_name(name)
    return base != name and base in (model, _REVISION.sub("", model))


def id_and_revision(name: str) -> tuple[str, str]:
    """A hub id and what follows its last ``@``; empty if it has none.

    Raises:
        UserError: nothing stands before or after it.
    """
    hub_id, mark, revision = name.rpartition("@")
    if not mark:
        return name, ""
    if not (hub_id and revision):
        raise UserError(
            f"--model {name}: give a hub id, @, and a branch, tag or commit, such as "
            "EleutherAI/pythia-160m@step1000."
        )
    return hub_id, revision
