"""The public interface gives a value or our own error, for any arguments."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from probes.cli.main import build_parser
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.extraction.models.model_files import find_model
from probes.run.config import RunConfig
from probes.run.settings import validate


def check(examples):
    return settings(max_examples=examples, derandomize=True)


def or_our_error(call, *arguments, **named):
    """The value of a call; None if it is our error, in one line."""
    try:
        return call(*arguments, **named)
    except UserError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        return None


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
NAMES = st.text(max_size=6)
VALUES = st.recursive(
    SCALARS, lambda x: st.lists(x, max_size=3) | st.dictionaries(NAMES, x, max_size=3), max_leaves=6
)


@pytest.mark.slow
@check(300)
@example({"sites": [[]]})
@given(st.dictionaries(st.sampled_from(sorted(RunConfig.model_fields)), VALUES, max_size=3))
def test_settings(given_settings):
    or_our_error(validate, given_settings)


FLAGS = sorted(o for a in build_parser()._actions for o in a.option_strings if o != "-h")


@check(100)
@given(st.lists(st.sampled_from(FLAGS) | st.text(max_size=8), max_size=6))
def test_command_lines(arguments):
    if not {"--help", "--version"} & set(arguments):
        or_our_error(build_parser().parse_args, arguments)


@check(100)
@given(st.text(min_size=1, max_size=40))
def test_names_of_models(name):
    assert or_our_error(find_model, "./" + name) is None


@check(100)
@given(st.text(min_size=1, max_size=40))
def test_names_of_corpora(name):
    assert or_our_error(find_corpus, "./\0" + name) is None
    or_our_error(find_corpus, "./nowhere/" + name.replace("/", "_"))
