"""The runs of several models on a corpus, made alike in every process that takes part."""

from __future__ import annotations

from collections.abc import Sequence

from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyCorpus, LazyModel
from probes.engines.model_run import ModelRun
from probes.engines.omissions import Omissions
from probes.engines.plan import layers_of
from probes.engines.task_choice import choose_tasks, require_measurable, require_pairs
from probes.extraction.model_files import stored_layers


def model_runs(
    config: RunConfig, source: Source, models: Sequence[LazyModel], command: str = ""
) -> list[ModelRun]:
    """One run for each model; they share the corpus, the tasks and the omissions.

    Raises:
        UserError: the corpus, or a single model, does not serve a task or measurement that is
            asked for; or a model does not have a layer.
    """
    for model in models:
        if (n_layers := stored_layers(model.source.folder)) is not None:
            layers_of(config, n_layers, model.source.name)
    require_pairs(config, len(models))
    corpus, omissions = LazyCorpus(source), Omissions()
    probing = "probes" in config.measurements
    tasks = choose_tasks(config, corpus, omissions) if probing else []
    require_measurable(config, corpus)
    several = len(models) > 1
    runs = [ModelRun(config, model, corpus, tasks, omissions, command, several) for model in models]
    for run in runs[1:]:
        run.base = runs[0]
    return runs
