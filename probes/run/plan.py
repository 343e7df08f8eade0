"""The plan of a run: its models, and the stages in which their records are made. No torch here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product

from probes.common.errors import UserError, counted
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.data.sources import Source
from probes.extraction.models.model_files import n_configured_layers
from probes.extraction.models.model_names import VECTORS
from probes.measurements.measurement import get_measurement
from probes.records.probe_spec import PROBES
from probes.records.record_files import Index
from probes.records.result import SCORES
from probes.run.config import RunConfig
from probes.run.inputs import LazyCorpus, LazyModel
from probes.run.jobs import Job, layers_of
from probes.run.model_run import ModelRun
from probes.run.settings import config_for_items
from probes.run.task_choice import Omissions, choose_tasks, require_measurable, require_pairs
from probes.training.families import reads_tokens


@dataclass(frozen=True)
class Stage:
    """Jobs that are made one after the other, before those of the next stage.

    Attributes:
        runs: the models that it is made of.
        family: of probes; empty for all.
    """

    runs: Sequence[ModelRun]
    measurement: str
    family: str = ""

    @property
    def title(self) -> str:
        """The name that messages use."""
        of_family = f" of {self.family} probes" if self.family else ""
        of_twins = " of random twins" * all(run.model.is_twin for run in self.runs)
        return get_measurement(self.measurement).title + of_family + of_twins

    def jobs(self) -> list[Job]:
        """All jobs, whether they are done or not."""
        return [job for run in self.runs for job in run.jobs(self.measurement, self.family)]

    def remaining(self) -> list[Job]:
        """The jobs that are still to be made; records that are there are read."""
        remaining = (
            run.what_remains(job)
            for run in self.runs
            for job in run.jobs(self.measurement, self.family)
        )
        return [job for job in remaining if job is not None]


def stages_of(runs: Sequence[ModelRun]) -> Iterator[Stage]:
    """The stages of a run: scores family by family, of random twins last, then the others."""
    # Twins come last: whoever stops early has the scores of the models that were named.
    for is_twin in (False, True):
        group = [run for run in runs if run.model.is_twin == is_twin and run.tasks]
        for family in dict.fromkeys(family for run in group for family in run.families):
            yield Stage([run for run in group if family in run.families], SCORES, family)
    for name in dict.fromkeys(name for run in runs for name in run.other_measurements):
        yield Stage([run for run in runs if name in run.other_measurements], name)


def refuse_existing(runs: Sequence[ModelRun]) -> None:
    """For `--overwrite never`.

    Raises:
        UserError: a record exists already.
    """
    for stage in stages_of(runs):
        for job in stage.jobs():
            if job.path.exists():
                raise UserError(
                    f"{job.path} exists already, and --overwrite is 'never'; "
                    "name another --output, or use --overwrite missing."
                )


def announce_stored(runs: Sequence[ModelRun]) -> None:
    """Read the scores that are stored, and say how many there are."""
    for run in runs:
        for job in run.jobs(SCORES):
            run.what_remains(job)
        if run.results:
            n = counted(len(run.results), "result exists", "results exist")
            progress.say(f"{run.name}: {n} already", "present", model=run.name)


def model_runs(
    config: RunConfig,
    source: Source,
    models: Sequence[LazyModel],
    command: str = "",
    began: datetime | None = None,
) -> list[ModelRun]:
    """One run for each model; they share the corpus, the tasks and the omissions.

    Args:
        began: see `ModelRun`; now if it is not given.
    """
    config = config_for_items(config, source)
    # Before the corpus is read: a layer that no model has is found at once.
    configs = []
    for model in models:
        encoder = model.in_memory
        n_layers = encoder.info.n_layers if encoder else n_configured_layers(model.source.config)
        if n_layers is not None:
            layers = config.layers and layers_of(config, n_layers, model.source.name)
            configs.append(config.model_copy(update={"layers": layers}))
    require_pairs(config, len(models))
    for model, family in product(models, config.probes):
        in_memory = model.in_memory is not None and not model.in_memory.reads_text
        if (in_memory or model.name_given.startswith(VECTORS)) and reads_tokens(PROBES[family]):
            why = f"reads all tokens of a text, and {model.source.name} has one vector for each"
            raise UserError(f"--probes {family}: {why}; leave it out.")
    corpus, omissions = LazyCorpus(source), Omissions()
    tasks = choose_tasks(config, corpus, omissions) if config.trains_probes else []
    for config_of_model in configs or [config]:
        require_measurable(config_of_model, corpus)
    index, began = Index(), began or datetime.now(UTC)
    request = config.corpus_request
    corpora = [LazyCorpus(find_corpus(name, **request)) for name in config.trained_elsewhere]
    negatives = None
    if config.threshold_from:
        request |= {"label": (), "split_by": "sentence"}
        try:
            negatives = LazyCorpus(find_corpus(config.threshold_from, **request))
        except UserError as error:
            raise UserError(str(error).replace("--corpus", "--threshold-from")) from error
    runs: list[ModelRun] = []
    for lazy in models:
        model = lazy.for_language_of(corpus)
        model.corpus = corpus
        about = omissions, index, command, began, negatives
        elsewhere = [ModelRun(config, lazy.for_language_of(x), x, tasks, *about) for x in corpora]
        base = runs[0] if runs else None
        several = len(models) > 1
        runs.append(ModelRun(config, model, corpus, tasks, *about, several, base, elsewhere))
    return runs
