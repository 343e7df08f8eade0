"""SIGTERM stops a command as Ctrl-C does, whatever the command is doing."""

import os
import signal
import subprocess
import sys
import time

import pytest
from killing import ROOT

from probes.cli.arguments import exit_status

pytestmark = pytest.mark.integration

STOPPED = "stopped; finished results are kept; run the same command again to continue\n"


@pytest.fixture(autouse=True)
def usual_sigterm():
    """The usual handler of SIGTERM: Ray may have left one of its own in an earlier test."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def told_to_stop(within=lambda: None):
    """A command to which SIGTERM comes; it waits a little for what follows from that."""

    def run(_):
        within()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        return 0

    return run


def test_sigterm_is_a_stop_with_a_status_of_its_own(capsys):
    assert exit_status(told_to_stop(), []) == 143
    assert capsys.readouterr().err == STOPPED
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_one_does_not_disturb_the_closing(capsys):
    closed = []

    def run(arguments):
        try:
            return told_to_stop()(arguments)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            closed.append(True)

    assert exit_status(run, []) == 143
    assert (closed, capsys.readouterr().err) == ([True], STOPPED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_the_shell_has_ignored_stays_ignored(number):
    """As it does with Ctrl-C for what it puts in the background."""
    script = f"""
import os, sys
from probes.cli.arguments import exit_status
sys.exit(exit_status(lambda _: os.kill(os.getpid(), {int(number)}) or 7, []))
"""
    line = ["sh", "-c", f"trap '' {int(number)}; exec \"$@\"", "sh", sys.executable, "-c", script]
    assert subprocess.run(line, cwd=ROOT, check=False).returncode == 7


def test_a_program_that_calls_the_suite_keeps_its_own_handler():
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(True))
    try:
        assert exit_status(lambda _: os.kill(os.getpid(), signal.SIGTERM) or 7, []) == 7
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [True]
