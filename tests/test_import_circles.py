"""No file of the package imports itself through others, but for types alone."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules():
    """Files by the names under which they are imported."""
    for folder in ("probes", "common", "data", "tasks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts if folder == "probes" else ("probes", *parts))
            yield name.removesuffix(".__init__"), path


def imported(path, known):
    """The modules among `known` that a file imports, also within functions."""
    tree = ast.parse(path.read_text("utf-8"))
    types = [x for x in tree.body if isinstance(x, ast.If) and "TYPE_CHECKING" in ast.dump(x.test)]
    for_types = {node for each in types for node in ast.walk(each)}
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in known else node.module


def test_no_file_imports_itself_through_others():
    known = dict(modules())
    graph = {name: {*imported(path, known)} & {*known} - {name} for name, path in known.items()}
    assert len(graph) > 300
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the files
