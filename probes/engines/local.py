"""One model on one corpus: encodes each view once, fits and records every unit that remains."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from probes import __version__
from probes.common.errors import UserError, printable
from probes.common.locks import SUFFIX, BusyError, locked
from probes.common.terminal import progress
from probes.compute.memory import explain_out_of_memory
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyCorpus, Subject, corpus_counts, per_split
from probes.engines.plan import FitUnit, Plan, what_is_left
from probes.examples.breakdowns import marked_by_pieces
from probes.examples.control_task import has_types
from probes.examples.examples import Examples, NotServedError, collect_examples
from probes.extraction.encoding import open_or_encode
from probes.extraction.store import StoreKey, Vectors
from probes.extraction.views import View, ViewName
from probes.measurements.plug_in_keys import blame, plug_ins_of
from probes.measurements.probing import encoding_record, probe
from probes.records.files import write_result
from probes.records.header import CorpusRecord, TaskRecord
from probes.records.provenance import provenance
from probes.records.result import SCHEMA_VERSION, Result
from probes.tasks.checked import TaskError
from probes.tasks.task import Task
from probes.training.dataset import work_of
from probes.training.memory_plan import least


def _distribution(examples: Examples, shown: int = 10) -> str:
    """The most frequent labels with the share of train that has them: ``NOUN 17.0%, …``."""
    counts = [(label, count[0]) for label, count in examples.label_counts.items() if count[0]]
    total = len(examples.splits["train"].examples)
    parts = [f"{printable(label)} {count / total:.1%}" for label, count in counts[:shown]]
    if rest := sum(count for _, count in counts[shown:]):
        # Of several labels at once, shares do not add up.
        share = "" if examples.label_sets else f" {rest / total:.1%}"
        parts.append(f"{len(counts) - shown} more{share}")
    return ", ".join(parts)


def _best(result: Result) -> str:
    if result.best_number is None:
        return f"no best layer, since {result.task.metric} is undefined on dev"
    return f"best layer {result.best_number}"


@dataclass
class Session:
    """One model on one corpus: encodes each view once, fits every unit that remains."""

    config: RunConfig
    subject: Subject
    corpus: LazyCorpus
    plan: Plan
    command: str
    skipped: dict[str, str]
    """Tasks that turn out not to be served, and why; added to."""
    unserved: dict[str, NotServedError]
    """Tasks asked for that turn out not to be served, by model; added to."""
    failed: dict[str, str]
    """What is missing since a task or a plug-in failed, and why; added to."""

    def work_off(self) -> Iterator[Result]:
        """Compute the plan's units, writing each result the moment it is done.

        Raises:
            UserError: a layer was asked for that the model does not have, or `--memory` is less
                than a unit takes.
        """
        if not self.plan.todo:
            return
        n_blocks, asked = self.subject.encoder.info.n_layers, max(self.config.layers, default=0)
        if asked > n_blocks:
            name = self.subject.source.name
            raise UserError(f"--layers {asked}: {name} has layers 0 to {n_blocks}.")
        self._require_memory()
        # What another run is computing comes last: by then it may be there.
        busy = yield from self._round(self.plan.todo, wait=False)
        yield from self._round(busy, wait=True)
        self.subject.release()

    def _require_memory(self) -> None:
        """Refuse a `--memory` below what training takes, before anything is encoded.

        Raises:
            UserError: it is below that of a unit.
        """
        given = self.config.memory
        if given is None:
            return
        needs: dict[str, int] = {}
        for task, units in groupby(self.plan.todo, key=lambda unit: unit.task):
            try:
                examples = collect_examples(task, self.corpus.value, self._hides)
            except (NotServedError, TaskError):
                continue  # said when it is its turn
            for unit in units:
                try:
                    needs[f"{task.name} with {unit.probe.family}"] = self._least(unit, examples)
                except Exception as error:
                    if not blame(error, task, unit.probe.family):
                        raise
                    # The plug-in's failure is reported when the unit is fitted.
        what = max(needs, key=lambda name: needs[name], default="")
        if what and needs[what] > given:
            enough = f"{math.ceil(needs[what] / 1e6)}MB"
            less = "--project" if self.config.quick else "--quick or --project"
            raise UserError(
                f"--memory {given / 1e6:g}MB: fitting {what} probes takes {enough} at least, one "
                f"layer at a time; give --memory {enough}, or need less with {less}."
            )

    def _least(self, unit: FitUnit, examples: Examples) -> int:
        """Bytes that fitting a unit takes at least."""
        info, device = self.subject.encoder.info, self.subject.encoder.device
        control = not unit.quick and has_types(examples)
        work = work_of(
            examples,
            info.hidden_size,
            self.config.project,
            unit.probe,
            device,
            n_cells=unit.n_seeds * (2 if control else 1),
        )
        n_layers = info.n_layers + 1
        whole = unit.layers in ((), tuple(range(n_layers)))
        return least(work, n_layers if whole and not unit.quick else 0)

    @property
    def _hides(self) -> ViewName:
        """How the model reads an example that hides a word."""
        return "cut" if self.subject.encoder.words.mask_id is None else "masked"

    def _round(
        self, todo: Sequence[FitUnit], *, wait: bool
    ) -> Generator[Result, None, list[FitUnit]]:
        """Compute units; returns those that another run has in hand, if not to `wait` for it."""
        busy: list[FitUnit] = []
        plain: tuple[View, Vectors] | None = None
        for task, units in groupby(todo, key=lambda unit: unit.task):
            try:
                examples = self._examples(task)
            except NotServedError as error:
                named = (*self.config.tasks, *self.config.task_from)
                if task.name in named or self.corpus.value.limited:
                    self.unserved[f"{self.subject.source.name} · {task.name}"] = error
                    progress.insist(f"failed  {task.name}: {error}")
                    continue
                self.skipped[task.name] = str(error)
                progress.say(f"skipped {task.name}: {error}", "skipped", task=task.name)
                continue
            except TaskError as error:
                self._fail(task.name, str(error))
                continue
            if examples.view == "plain":
                encoded = plain = plain or self._vectors(examples)
            else:
                encoded = self._vectors(examples)
            for unit in units:
                try:
                    result = self._once(unit, wait, examples, *encoded)
                except BusyError:
                    busy.append(unit)
                    continue
                except TaskError as error:
                    self._fail(f"{unit.task.name} · {unit.probe.family}", str(error))
                    continue
                except Exception as error:
                    why = blame(error, unit.task, unit.probe.family)
                    if not why:
                        raise
                    encoded[1].forget_derived()
                    self._fail(f"{unit.task.name} · {unit.probe.family}", why)
                    continue
                yield result
        return busy

    def _fail(self, what: str, why: str) -> None:
        """Note what will be missing; the run goes on, since nothing else depends on it."""
        self.failed[f"{self.subject.source.name} · {what}"] = why
        progress.insist(f"failed  {what}: {why}")

    def _once(
        self, unit: FitUnit, wait: bool, examples: Examples, view: View, vectors: Vectors
    ) -> Result:
        """The unit's result, computed here unless another run has meanwhile.

        Raises:
            BusyError: another run is computing it, and is not to be waited for.
        """
        what = f"{unit.task.name} · {unit.probe.family}"
        lock = unit.path.with_suffix(SUFFIX)
        with locked(lock, waiting=f"for another run to fit {what}", wait=wait):
            left = what_is_left(unit, anew=self.config.overwrite == "always")
            if isinstance(left, Result):
                progress.say(f"read    {what} · another run has computed it", "read")
                return left
            return self._fit(left, examples, view, vectors)

    def _examples(self, task: Task) -> Examples:
        words = self.subject.encoder.words
        found = marked_by_pieces(collect_examples(task, self.corpus.value, self._hides), words)
        counts = {split: len(part.examples) for split, part in found.splits.items()}
        what = f"{task.shape}, {task.kind}, {task.metric}"
        message = f"task    {task.name} · {what} · {per_split(counts)} examples"
        if found.classes:
            message += f" · {len(found.classes)} labels in train: {_distribution(found)}"
        if unseen := found.unseen("test"):
            message += f" · {len(unseen)} test examples have a label that train lacks"
        excluded = {split: dict(part.excluded) for split, part in found.splits.items()}
        if reasons := sorted({reason for left_out in excluded.values() for reason in left_out}):
            each = (per_split({s: n.get(r, 0) for s, n in excluded.items()}) for r in reasons)
            left_out = ", ".join(f"{n} {reason}" for n, reason in zip(each, reasons, strict=True))
            message += f" · left out: {left_out}"
        progress.say(message, "task", task=task.name, examples=counts, excluded=excluded)
        return found

    def _vectors(self, examples: Examples) -> tuple[View, Vectors]:
        encoder = self.subject.encoder
        view = examples.view_of(self.corpus.value)
        key = StoreKey(
            self.subject.source.digest, view.digest, self.config.pooling, self.config.dtype
        )
        clock = time.perf_counter()
        advice = "use --dtype bfloat16, another --device, or free some memory."
        with explain_out_of_memory(f"encoding {encoder.info.name}", advice):
            vectors = open_or_encode(
                self.config.cache_dir,
                key,
                view,
                encoder,
                self.config.batch_tokens,
                self.corpus.source.name,
            )
        progress.say(
            f"vectors {view.name} view · {vectors.manifest['rows']:,} words × "
            f"{vectors.n_layers} layers, {vectors.manifest['storage']} · "
            f"{vectors.manifest['unknown_words']} words without a subword · "
            f"{time.perf_counter() - clock:.1f} s",
            "vectors",
            view=view.name,
            rows=vectors.manifest["rows"],
            seconds=time.perf_counter() - clock,
        )
        return view, vectors

    def _fit(self, unit: FitUnit, examples: Examples, view: View, vectors: Vectors) -> Result:
        layers = unit.layers or tuple(range(vectors.n_layers))
        what = f"{unit.task.name} · {unit.probe.family}"
        with progress.bar(what, total=len(layers), unit="layer") as bar:
            outcome = probe(
                examples,
                view,
                vectors,
                unit.probe,
                layers,
                unit.n_seeds,
                self.subject.encoder.device,
                self.config.memory,
                unit.quick,
                self.config.project,
                on_layers=bar.update,
            )
        corpus, task = self.corpus.value, examples.task
        sentences, words = corpus_counts(corpus)
        result = Result(
            schema_version=SCHEMA_VERSION,
            suite_version=__version__,
            key=unit.key,
            model=self.subject.encoder.info,
            corpus=CorpusRecord(
                name=corpus.name,
                version=corpus.version,
                licence=corpus.licence,
                citation=self.corpus.source.citation,
                silver=tuple(sorted(self.corpus.source.silver)),
                digest=self.corpus.source.digest,
                fingerprint=corpus.fingerprint,
                sentences=sentences,
                words=words,
                notes=dict(corpus.notes),
                limit=self.config.limit,
                limited=corpus.limited,
            ),
            task=TaskRecord(
                name=task.name,
                version=task.version,
                needs=task.needs,
                kind=task.kind,
                shape=task.shape,
                metric=task.metric,
            ),
            view=examples.view,
            pooling=self.config.pooling,
            dtype=self.config.dtype,
            probe=unit.probe,
            plug_ins=plug_ins_of(task, unit.probe.family),
            project=self.config.project,
            probe_parameters=outcome.probe_parameters,
            quick=unit.quick,
            control=outcome.control,
            examples=outcome.examples,
            group_metric=outcome.group_metric,
            layers=outcome.layers,
            baselines=outcome.baselines,
            references=outcome.references,
            code=outcome.code,
            localisation=outcome.localisation,
            encoding=encoding_record(vectors.manifest),
            seconds=outcome.seconds,
            provenance={
                **provenance(self.command or "python", self.subject.encoder.device),
                **({"remote code": "ran"} if self.subject.encoder.remote_code else {}),
            },
        )
        write_result(unit.path, result, outcome.arrays)
        seconds = " + ".join(f"{name} {value:.1f}" for name, value in outcome.seconds.items())
        covered = outcome.examples.covered_sentences
        progress.say(
            f"fitted  {what} · {_best(result)} · {seconds} s"
            + ("" if covered is None else f" · {task.metric} covers {covered:,} test sentences"),
            "fitted",
            task=task.name,
            probe=unit.probe.family,
            best_layer=result.best_number,
            seconds=outcome.seconds,
            result=str(unit.path),
        )
        return result
