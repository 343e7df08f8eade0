"""The suite takes one import name, `probes`."""

import email
import importlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from checkouts import copy_checkout

import probes

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture
def decoys(tmp_path):
    """A folder with modules of the user's own that are named like folders of the repository."""
    folder = tmp_path / "project"
    (folder / "common").mkdir(parents=True)
    for name in ("tasks.py", "data.py", "common/__init__.py"):
        (folder / name).write_text("raise SystemExit(f'{__name__} was imported')\n")
    return folder


def checked(command, folder, **environment):
    """Standard output of a command, run in `folder`, that has to succeed."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def require_unconfused(run_probes, python, folder, model, **environment):
    """Lists, a sub-command and a small run work in `folder`.

    Args:
        run_probes: the command that runs probes, as a list of words.
        python: the interpreter.
    """
    assert "span_f1" in checked([*run_probes, "--list-tasks"], folder, **environment)
    corpora = checked([python, "-m", "probes", "corpora"], folder, **environment)
    assert "embedded" in corpora
    line = "--tasks pos --probes linear --limit 20 --quick --device cpu --output r --cache-dir c"
    table = checked([*run_probes, "--model", model, *line.split()], folder, **environment)
    assert "linear probe · test" in table
    assert (folder / "r" / "leaderboard.csv").is_file()
    assert checked([python, "-c", "from probes import Task"], folder, **environment) == ""


@pytest.mark.slow
def test_a_checkout_does_not_import_modules_of_the_users_project(decoys, tiny_bert):
    run_probes = [sys.executable, ROOT / "run_probes.py"]
    require_unconfused(run_probes, sys.executable, decoys, tiny_bert, PYTHONPATH=str(ROOT))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the source distribution of the files that git knows."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("wheel")
    copy_checkout(folder / "copy")
    code = "from setuptools import build_meta; build_meta.build_sdist('..')"
    checked([sys.executable, "-c", code], folder / "copy")
    (source,) = folder.glob("*.tar.gz")
    build = [sys.executable, "-m", "pip", "wheel", source, "--no-deps", "--no-build-isolation"]
    checked([*build, "--quiet", "--wheel-dir", folder], folder)
    (found,) = folder.glob("*.whl")
    return found


def test_the_version_stands_in_one_place(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(place))
    assert metadata["Name"] == "probing-suite"
    assert metadata["Version"] == probes.__version__
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited == [probes.__version__] == released[:1]


def test_the_source_distribution_holds_what_is_built_from_it_and_no_tests(wheel):
    (source,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"} <= names
    assert not any(name.startswith(("tests", "results")) for name in names)


def test_the_wheel_holds_one_package_with_all_its_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"probes"}
    for source, package in (
        ("probes", "probes"),
        ("common", "probes/common"),
        ("data", "probes/data"),
        ("tasks", "probes/tasks"),
        ("examples", "probes/cli/examples"),
    ):
        for path in (ROOT / source).rglob("*"):
            # A repository to copy and what the manual runs are no part of the package.
            of_manual = path.parent == ROOT / "examples"
            left_out = of_manual or path.suffix == ".pyc" or "results-repository" in path.parts
            if path.is_file() and not left_out:
                assert f"{package}/{path.relative_to(ROOT / source).as_posix()}" in names


@pytest.mark.slow
def test_an_installed_suite_does_not_import_modules_of_the_users_project(
    wheel, decoys, tiny_bert, tmp_path
):
    python = tmp_path / "env" / "bin" / "python"
    checked([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], tmp_path)
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--quiet"]
    checked([*install, wheel], tmp_path)
    # Everything else comes from this environment, whose own .pth files are not read.
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = "import probes, probes.tasks; print(probes.__file__, *probes.tasks.__path__)"
    assert all(str(site) in path for path in checked([python, "-c", where], tmp_path).split())
    require_unconfused([python.with_name("probes"), "run"], python, decoys, tiny_bert)
    assert "run_probes.py" not in checked([python.with_name("probes"), "run", "--help"], tmp_path)


def test_a_checkout_works_without_links(tmp_path):
    """Git for Windows makes text files of them by default."""
    copy_checkout(tmp_path)
    links = [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert len(links) == 5
    for path in links:
        target = str(path.readlink())
        path.unlink()
        path.write_text(target)
    assert "span_f1" in checked([sys.executable, "run_probes.py", "--list-tasks"], tmp_path)
    where = "import probes.tasks; print(probes.tasks.__path__)"
    assert checked([sys.executable, "-c", where], tmp_path) == f"['{tmp_path}/tasks']\n"


def test_a_folder_of_an_editable_install_hides_none_of_the_users():
    """Of the checkout, its only folder on the path of an editable install has `probes` alone."""
    assert [path.name for path in (ROOT / "src").iterdir() if path.suffix != ".egg-info"] == [
        "probes"
    ]
    assert (ROOT / "src" / "probes").resolve() == ROOT / "probes"


def test_every_stable_name_can_be_imported():
    for name in probes.__all__:
        assert getattr(probes, name) is not None
        assert name in dir(probes)


@pytest.mark.parametrize("package", ["common", "data", "tasks"])
def test_a_folder_of_the_checkout_is_no_package_of_its_own(package):
    with pytest.raises(ImportError) as caught:
        importlib.import_module(package)
    assert f"probes.{package}" in str(caught.value)


def test_a_plug_in_imports_modules_beside_it_first(plug_ins, tmp_path):
    (tmp_path / "helper.py").write_text("NAME = 'mine'\n")
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "__init__.py").write_text("METRIC = 'accuracy'\n")
    (tmp_path / "mine.py").write_text(
        "from common import METRIC\nfrom helper import NAME\nfrom probes import task\n\n"
        "@task(NAME, version=1, needs=(), metric=METRIC)\n"
        'def rule(sentence):\n    """Found beside."""\n    yield from ()\n'
    )
    before = list(sys.path)
    listed = [sys.executable, ROOT / "run_probes.py", "--list-tasks", "--include", "mine.py"]
    assert "Found beside." in checked(listed, tmp_path)
    assert sys.path == before
