"""Lines of values in TOML files."""

import pytest

from probes.common.errors import UserError
from probes.common.toml_lines import TomlFile

TEXT = '''\
# A comment with output = "x"
output = "results"

text = """
models = 3
"""
models = [
    "a",  # not "b"
    # c = 1

    "b", ["c",
      "d"],
]

[defaults]
seeds = 2
options.structure.seeds = 7

[[runs]]
corpora = ["x"]

[[runs]]
# corpora = ["y"]
"corpora" = ["y", """
z"""]
tasks.a = { b = 1, c = 2 }
'''


@pytest.fixture
def file(tmp_path):
    def file(text):
        path = tmp_path / "s.toml"
        path.write_text(text)
        return TomlFile(path)

    return file


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("output",), 2),
        (("text",), 4),
        (("models",), 7),
        (("models", 0), 8),
        (("models", 1), 8),  # the first line that has it, here in a comment
        (("models", 2, 1), 12),
        (("defaults",), 15),
        (("defaults", "seeds"), 16),
        (("defaults", "options", "structure", "seeds"), 17),
        (("runs",), 19),
        (("runs", 0, "corpora"), 20),
        (("runs", 1), 22),
        (("runs", 1, "corpora", 0), 24),
        (("runs", 1, "tasks", "a", "c"), 26),
        (("runs", 1, "nothing", "of", "it"), 22),
        (("nothing",), 1),
        ((), 1),
    ],
)  # fmt: skip
def test_a_value_is_found_where_it_stands(file, place, line):
    assert file(TEXT).line(place) == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb =\n", r"s\.toml, line 2: not TOML \(Invalid value\); correct it\.$"),
        ("a = 1\n\na = 2\n", r"s\.toml, line 3: not TOML \(Cannot overwrite a value\)"),
        ("a = [\n1,\n", r"s\.toml, at its end: not TOML"),
    ],
)
def test_what_is_not_toml_is_refused_with_its_line(file, text, said):
    with pytest.raises(UserError, match=said):
        file(text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        TomlFile(tmp_path / "s.toml")
