"""The Python entry point: `probes.run_probes`."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from probes.cli.results import Results
from probes.cli.run import run_models
from probes.common.errors import UserError, printable
from probes.common.files import folder_name
from probes.data.find import find_corpus
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyModel, find_models
from probes.engines.settings import validate
from probes.extraction.model_files import ModelSource


def run_probes(
    model: str | os.PathLike[str] | Sequence[str] | tuple[Any, Any],
    *,
    name: str | None = None,
    **settings: Any,
) -> Results:
    """Probe one or more models.

    Args:
        model: a name as `--model` takes it, several names, or a pair (model, tokenizer) in memory.
        name: what tables call a model in memory.
        **settings: the flags of `run_probes.py`, such as ``corpus="sample"``, ``tasks="pos,depth"``
            or ``tasks=("pos", "depth")``, ``seeds=3``; see `probes.engines.config.RunConfig`.

    Returns:
        the results, which are also written to the folder `output`.

    With ``workers=2`` or more, each worker is a new Python process that imports the calling script:
    the script must call this function below ``if __name__ == "__main__":``.

    Raises:
        UserError: something that the caller can correct.
    """
    config = validate(settings)
    if config.workers > 1 and getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker that imports a script without this line; who started it says so
    names = [model] if isinstance(model, (str, os.PathLike)) else model
    if isinstance(names, (list, tuple)) and all(isinstance(n, (str, os.PathLike)) for n in names):
        if name is not None:
            raise UserError(f"name={name!r}: only for a model in memory; leave it out.")
        models = find_models([os.fspath(n) for n in names], config)
    else:
        config, in_memory = _in_memory(model, name, config)
        models = [in_memory]
    return run_models(config, find_corpus(*config.corpus, **config.corpus_request), models)


def _in_memory(model: Any, name: str | None, config: RunConfig) -> tuple[RunConfig, LazyModel]:
    """A pair (model, tokenizer) as a model to probe, and the settings with its dtype."""
    if config.workers > 1 or config.engine == "ray":
        given = "engine='ray'" if config.engine == "ray" else f"workers={config.workers}"
        raise UserError(
            f"{given}: workers cannot read a model in memory; save it and give its folder, or "
            f"leave {given.partition('=')[0]} out."
        )
    try:
        network, tokenizer = model
        dtype = str(network.dtype).removeprefix("torch.")
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(
            "run_probes() takes a name, several names, or a pair (model, tokenizer)."
        ) from error
    if config.dtype not in ("auto", dtype):
        raise UserError(f"dtype={config.dtype}: the model in memory is in {dtype}; convert it.")
    config = config.model_copy(update={"dtype": dtype})
    from probes.extraction.encoder import Encoder

    label = printable(name or type(network).__name__)
    encoder = Encoder(network, tokenizer, name=label, device=config.device)
    digest = encoder.info.digest
    slug = f"{folder_name(label)}-{digest[:8]}"
    source = ModelSource(label, Path(), digest[:12], slug, None, digest)
    return config, LazyModel(source, config, in_memory=encoder)
