"""The hub: what it may send, and the one line that each failure is."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_hub import COMMIT, fake_hub, send, status

from probes.cli.main import main
from probes.common import hub
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.extraction.models.model_files import find_model


@pytest.fixture
def files(tiny_bert) -> dict[str, bytes]:
    """The tiny model."""
    return {path.name: path.read_bytes() for path in tiny_bert.iterdir()}


@pytest.fixture(autouse=True)
def hub_folder(tmp_path, monkeypatch) -> Path:
    """An empty hub cache; nothing waits long."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub, "_TIMEOUT", 0.3)
    monkeypatch.setattr("time.sleep", lambda _, sleep=time.sleep: sleep(0.01))
    return tmp_path / "hub"


def hanging(handler):
    time.monotonic()
    handler.rfile.read(1)  # until the client hangs up


def hanging_up(handler):
    handler.close_connection = True


def login(handler):
    if "login" in handler.path:
        send(handler, 200, b"<html>Who are you?</html>")
    else:
        send(handler, 302, Location="/login")


BUSY = r"^--model org/m: the hub is busy \({}\)\. Try again later\.$"
NO_HUB = r"^--model org/m: http://127\.0\.0\.1:\d+ does not answer as a hub does \({}.*\)\. Check HF_ENDPOINT, proxies and logins\.$"
FAILURES = [
    ({"always": status(429)}, BUSY.format("429 Too Many Requests")),
    ({"always": status(503)}, BUSY.format("503 Service Unavailable")),
    ({"always": status(501)}, NO_HUB.format("501 Not Implemented")),
    ({"always": status(511)}, r"the network wants a login .* http:\S+ \(511 Network Auth"),
    (
        {"always": status(403)},
        r"the hub refuses access \(403 Forbidden\)\. Check your token and its",
    ),
    ({"always": status(402)}, r"the hub refuses access \(402 Payment Required\)\."),
    ({"always": status(407)}, r"a proxy lets nothing through to http:\S+ \(407 Proxy Auth"),
    ({"always": status(200)}, NO_HUB.format("Expecting value")),
    ({"always": status(404)}, NO_HUB.format("404 Not Found")),
    ({"always": lambda handler: send(handler, 200, b"[]")}, NO_HUB.format("")),
    ({"always": login}, NO_HUB.format("Expecting value")),
    ({"always": hanging}, r"^--model org/m: http://127\.0\.0\.1:\d+ does not answer\. Give --mod"),
    ({"always": hanging_up}, r"the connection to the hub broke off \(.+\)\. Try again\.$"),
    ({"always": status(404, X_Error_Code="RepoNotFound")}, "no public model of this name"),
    ({"always": status(403, X_Error_Code="GatedRepo")}, r"gated on the hub; accept its terms"),
    ({"commit": "../../../etc"}, NO_HUB.format(r"the commit '\.\./\.\./\.\./etc' is not 40 hex")),
    ({"commit": "main"}, NO_HUB.format("the commit 'main' is not 40 hex")),
    ({"header": None}, NO_HUB.format(".*is missing the 'X-Repo-Commit' header")),
    ({"header": "0" * 40}, NO_HUB.format(f"it sends .* as part of another commit than {COMMIT}")),
    ({"header": "../../evil"}, NO_HUB.format("Invalid")),
    ({"cut": "tokenizer.json"}, r"the connection to the hub broke off \(peer closed"),
]


@pytest.mark.parametrize(("how", "said"), FAILURES)
def test_each_failure_is_one_line_that_names_its_cause(
    files, monkeypatch, how, said, capfd, hub_folder
):
    with fake_hub(monkeypatch, files, **how), pytest.raises(UserError, match=said) as caught:
        find_model("org/m")
    assert "\n" not in str(caught.value)
    assert ("Did you mean" in str(caught.value)) is False
    assert "thrown while requesting" not in capfd.readouterr().err
    outside = [x for x in hub_folder.parent.rglob("*evil*") if x.is_file()]
    assert not outside


def test_a_proxy_that_wants_a_password_is_named(monkeypatch):
    """Through a tunnel, as to the real hub."""
    from huggingface_hub.utils import close_session

    with fake_hub(monkeypatch, always=status(407)):
        from huggingface_hub import constants

        monkeypatch.setenv("HTTPS_PROXY", constants.ENDPOINT)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setattr(constants, "ENDPOINT", "https://hub.example")
        close_session()
        with pytest.raises(UserError, match=r"nothing through to https://hub\.example \(407 "):
            find_model("org/m")
    close_session()


@pytest.mark.parametrize(
    ("address", "model"), [("https://[", "all-MiniLM-L6-v2"), ("http://127.0.0.1:99999", "org/m")]
)
def test_an_address_of_the_hub_that_is_none_is_refused(tmp_path, address, model):
    line = [sys.executable, "-m", "probes", "run", "--model", model, "--dry-run"]
    given = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path)}
    ended = subprocess.run(line, env=given, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    said = r"error: HF_ENDPOINT or another HF_ variable: (Inv|Port).+\. Correct it\.\n"
    assert re.fullmatch(said, ended.stderr)


def test_a_command_ends_with_2(monkeypatch, capsys):
    with fake_hub(monkeypatch, always=status(503)):
        assert main(["--model", "org/m", "--dry-run"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_datasets_fail_in_the_same_words(monkeypatch):
    with (
        fake_hub(monkeypatch, always=status(503)),
        pytest.raises(UserError, match=r"^--corpus org/d: the hub is busy \(503 Service"),
    ):
        find_corpus("org/d", task_from=("tags",))


def test_a_silent_hub_costs_seconds_for_any_number_of_cached_models(
    files, monkeypatch, capsys, hub_folder
):
    with fake_hub(monkeypatch, files):
        sources = [find_model(f"org/m{mark}") for mark in ("", "@v1")]
    capsys.readouterr()
    clock = time.monotonic()
    with fake_hub(monkeypatch, always=hanging) as requests:
        again = [find_model(f"org/m{mark}") for mark in ("", "@v1", "")]
    assert time.monotonic() - clock < 3
    assert requests.total() == 1
    assert [source.digest for source in again] == [sources[0].digest] * 3
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[2].partition(";")[2] for line in lines] == [
        f" the local cache has commit {COMMIT[:12]}"
    ] * 3
    # Without a network, the cached commit has the same names.
    assert find_model("org/m@v1", offline=True).revision == COMMIT


def test_a_hub_that_falls_silent_after_its_first_answer_does_not_stop_a_run_for_ever(
    files, monkeypatch
):
    def silent_later(handler):
        if "/tree/" in handler.path:
            hanging(handler)
        about = {"id": "org/m", "sha": COMMIT, "siblings": [{"rfilename": "config.json"}]}
        send(handler, 200, json.dumps(about).encode())

    monkeypatch.setattr(hub, "_TIMEOUT", 0.1)
    with (
        fake_hub(monkeypatch, always=silent_later),
        pytest.raises(UserError, match=r"does not answer\. "),
    ):
        find_model("org/m")


UNREADABLE = {
    "pytorch_model.bin": "only pickled weights",
    "model.gguf": r"a GGUF file; give --model the path of model\.gguf once it is downloaded$",
    "Q4/model.gguf": r"a GGUF file; give --model the path of Q4/model\.gguf once",
    "onnx/model.onnx": r"weights only in another format \(onnx/model\.onnx\)",
    "tf_model.h5": r"weights only in another format \(tf_model\.h5\)",
}


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_repository_without_safetensors_is_refused_as_a_folder_is(
    files, monkeypatch, name, planned, tmp_path
):
    del files["model.safetensors"]
    with fake_hub(monkeypatch, {**files, name: b"x"}):
        with pytest.raises(UserError, match=UNREADABLE[name]):
            find_model("org/m", planned=planned)
        # A twin needs no weights.
        assert find_model("random:org/m", planned=planned).seed == 0
    for path, content in {**files, name: b"x"}.items():
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / path).write_bytes(content)
    with pytest.raises(UserError, match=UNREADABLE[name].partition("the path of")[0]):
        find_model(str(tmp_path / "copy"), planned=planned)


def test_weights_on_the_hub_are_not_downloaded_for_a_plan(files, monkeypatch):
    with fake_hub(monkeypatch, {**files, "pytorch_model.bin": b"x"}) as requests:
        assert find_model("org/m", planned=True).weightless
    assert not any("model.safetensors" in path for path in requests)


def test_settings_of_generation_are_downloaded_and_change_no_key(files, monkeypatch):
    with fake_hub(monkeypatch, files):
        before = find_model("org/m").digest
    with fake_hub(monkeypatch, {**files, "generation_config.json": b'{"eos_token_id": [1, 2]}'}):
        source = find_model("org/n")
    assert "[1, 2]" in (source.folder / "generation_config.json").read_text()
    assert source.digest == before


def test_bars_of_downloads_are_hidden_if_the_suite_is_quiet(files, monkeypatch, capfd):
    from huggingface_hub.utils import are_progress_bars_disabled

    for quiet in (True, False):
        with fake_hub(monkeypatch, files), progress.verbosity(quiet=quiet, verbose=False):
            find_model(f"org/m{int(quiet)}")
        assert not are_progress_bars_disabled()
        assert ("Fetching" in capfd.readouterr().err) is not quiet
