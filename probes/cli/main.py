"""The command line of a run.

Torch is imported only once its arguments are valid, and for help nothing that takes long.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from probes import __version__
from probes.cli.arguments import (
    RUN,
    Parser,
    add_format,
    add_setting,
    add_verbosity,
    exit_status,
    typed,
)
from probes.common.errors import UserError
from probes.common.origin import Origin
from probes.common.terminal import progress
from probes.extraction.models.model_names import VECTORS
from probes.measurements.measurement import (
    EVIDENCE,
    TRANSFER,
    get_measurement,
    measurements,
    option_fields,
)
from probes.measurements.plugins import discover
from probes.run.config import RunConfig
from probes.tasks.builtin import STANDARD, tasks

if TYPE_CHECKING:
    from probes.cli.results import Results
    from probes.tables.printing import DataRow

EXAMPLES = f"""\
Which layer of a model knows what: layer-wise probes in one command.

examples:
  {RUN} --model all-MiniLM-L6-v2 --offline
      the standard tasks on the bundled sample corpus
  {RUN} --model ./my-model --corpus ewt --tasks pos,depth
      a local model and two tasks on a treebank, UD English-EWT
  {RUN} --model ONE OTHER --corpus path/to/UD_Hebrew-HTB
      two models compared on any treebank in CoNLL-U
  {RUN} --model M --corpus my.jsonl --task-from ner_tags
      labelled words of your own
  {RUN} --model M --corpus reviews.csv --text text --label stars
      labelled texts of your own (docs/texts.md)
  {RUN} --model M --include my_task.py --tasks my_task
      a task of your own (docs/adding-a-task.md)
"""


GROUPS = {
    "models": "device dtype load pooling sites project batch_tokens revision trust_remote_code",
    "corpus": "corpus limit split_by drop_overlap annotate",
    "measurements": "tasks probes layers measurements evidence quick transfer seeds twins",
    "your own data": "task_from text messages label metric fpr threshold_from positions "
    "special_tokens group field include",
    "results and folders": "output overwrite all_tasks dry_run data_dir cache_dir offline",
    "processes": "workers threads memory",
    "clusters": "engine address gpus_per_model",
}
"""Groups of help, with the settings in them."""


class _Help(argparse.Action):
    """`--help`, and `--help-all` with the options of clusters and of single measurements, too."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if option_string != "--help-all":
            for group in parser._action_groups:
                if group.title == "clusters" or (group.title or "").startswith("options of"):
                    group._group_actions = []
        parser.print_help()
        parser.exit()


def build_parser() -> Parser:
    """The parser of `run_probes.py`.

    Values stay text, which `RunConfig` checks; flags that are not given keep its defaults.
    """
    parser = Parser(
        prog=RUN,
        usage=f"{RUN} --model M [--corpus C] [--tasks T,…] [options]",
        description=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        add_help=False,
    )
    groups = {title: parser.add_argument_group(title) for title in GROUPS}
    models = groups["models"].add_argument
    models(
        "--model",
        nargs="+",
        metavar="M",
        help="models: a name on the hub, a folder, a .gguf file, a packaged model, or random:M",
    )
    models(
        "--vectors",
        nargs="+",
        metavar="V",
        help="word vectors in files instead of a model's: .npz, .npy, .safetensors, or word2vec's "
        "text format (docs/vectors.md)",
    )
    for title, settings in GROUPS.items():
        for name in settings.split():
            add_setting(parser, name, groups[title])
    others = parser.add_argument_group("help and output")
    add = others.add_argument
    add("-h", "--help", action=_Help, nargs=0, dest=argparse.SUPPRESS, help="print this and exit")
    help_all = "also the options of clusters and of single measurements"
    add("--help-all", action=_Help, nargs=0, dest=argparse.SUPPRESS, help=help_all)
    for name in LISTS:
        add(f"--list-{name}", action="store_true", help=f"list the {name} and exit")
    add_format(others)
    add("--version", action="version", version=f"probing-suite {__version__}")
    add_verbosity(others)
    for name in measurements:
        options = parser.add_argument_group(f"options of {name}").add_argument
        for option, about in option_fields(name).items():
            flag = _flag(name, option)
            # argparse would refuse it, too, but as a defect, and without the measurement's name.
            if flag in parser._option_string_actions:
                raise UserError(
                    f"Measurement {name!r}: its option {option!r} would be the flag {flag}, which "
                    "exists already; rename the option."
                )
            text = about.description or option
            if not about.is_required() and (default := typed(about.get_default())):
                text += f" (default: {default})"
            help_text = text.replace("%", "%%")
            options(flag, dest=f"{name}.{option}", metavar="VALUE", help=help_text)
    return parser


def _flag(measurement: str, option: str) -> str:
    return f"--{measurement}-{option}".replace("_", "-")


def _origin_mark(origin: Origin | None) -> str:
    """Mark of a task, measurement or corpus that is not part of the suite."""
    return f" [{origin}]" if origin else ""


def _options(flags: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of measurements, taken out of the arguments."""
    options: dict[str, dict[str, Any]] = {}
    for key in [key for key in flags if "." in key]:
        name, _, option = key.partition(".")
        options.setdefault(name, {})[option] = flags.pop(key)
    return options


def _listed_tasks() -> Iterator[DataRow]:
    for name in tasks:
        task = tasks.get(name)
        yield {
            "name": name,
            "default": name in STANDARD,
            "group": task.group,
            "version": task.version,
            "metric": task.metric,
            "summary": task.summary + _origin_mark(tasks.origin(name)),
        }


def _listed_measurements() -> Iterator[DataRow]:
    for name in measurements:
        definition = get_measurement(name)
        flag = "evidence" if definition.is_evidence else "measurements" * (definition.of != "task")
        yield {
            "name": name,
            "default": name in ("scores", *EVIDENCE),
            "flag": "transfer" if name == TRANSFER else flag,
            "version": definition.version,
            "summary": definition.summary + _origin_mark(measurements.origin(name)),
        }


def _listed_corpora() -> Iterator[DataRow]:
    from probes.data.registered import corpora

    for name in corpora:
        about = corpora.get(name).summary + _origin_mark(corpora.origin(name))
        yield {"name": name, "summary": about}


LISTS = {
    "tasks": (
        _listed_tasks,
        "* standard: run by default. --tasks all runs every task listed here that the corpus "
        "serves; --tasks GROUP runs the tasks of a group. The group morphology has a task for each "
        "feature of a treebank, such as feats.Number, and lemma-script.",
    ),
    "corpora": (_listed_corpora, "python -m probes corpora says which tasks they serve."),
    "measurements": (
        _listed_measurements,
        "* made by default, as --measurements scores: scores with their evidence. --list-tasks "
        "lists what probes predict.",
    ),
}
"""Functions that yield the rows of `--list-NAME`, each with a note below the table."""


def _print_list(list_name: str) -> None:
    """Print a list; in the terminal, short facts stand below each name."""
    from probes.tables.printing import printer
    from probes.tables.table import Cell, Table, TableRow

    listed, note = LISTS[list_name]
    rows = list(listed())
    lines = []
    for row in rows:
        mark = " *" if row.get("default") else ""
        short = [f"--{row['flag']}"] if row.get("flag") else []
        short += [row[key] for key in ("group", "metric") if key in row]
        lines.append(TableRow.of(Cell(row["name"] + mark, note=", ".join(short)), row["summary"]))
    table = Table(list_name, ("name", "what it is"), tuple(lines), left=2, notes=(note,))
    printer.show([table], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `probes.cli.arguments.exit_status`."""
    return exit_status(_run_probes_command, arguments)


def _run_probes_command(arguments: list[str]) -> int:
    # Parsing loads plug-ins, and reports those that cannot be loaded.
    progress.quiet = bool({"-q", "--quiet"} & set(arguments))
    flags, models = parse(arguments)
    progress.verbose = flags.pop("verbose", False)
    progress.quiet = flags.pop("quiet", False)
    from probes.run.settings import validate
    from probes.tables.printing import printer

    asked_lists = [name for name in LISTS if flags.pop(f"list_{name}", False)]
    with printer.printing(flags.pop("format"), wide=flags.pop("wide")):
        for name in asked_lists:
            _print_list(name)
        if asked_lists:
            return 0
        config = validate(flags)
        # Libraries of the hub read it when they are imported, which happens below.
        if config.offline:
            os.environ["HF_HUB_OFFLINE"] = "1"
        command = f"{RUN} {shlex.join(arguments)}"
        return 1 if measure(config, models, command).failed else 0


def parse(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Parse a command line, with the flags of the plug-ins that it includes.

    Returns:
        the arguments by name, with the options of measurements in "options"; and the models.
    """
    plug_ins = Parser(add_help=False)
    add_setting(plug_ins, "include")
    discover(plug_ins.parse_known_args(arguments)[0].include)
    flags = vars(build_parser().parse_args(arguments))
    models = flags.pop("model", []) + [f"{VECTORS}{path}" for path in flags.pop("vectors", [])]
    flags["options"] = _options(flags)
    return flags, models


def measure(config: RunConfig, models: Sequence[str], command: str) -> Results:
    """Find the models and the corpus, and measure; torch is imported only once they are found."""
    from probes.data.find import find_corpus
    from probes.run.inputs import find_models

    lazy_models = find_models(models, config)
    source = find_corpus(*config.tested, **config.corpus_request)

    from probes.cli.run import run_corpora

    return run_corpora(config, source, lazy_models, command)
