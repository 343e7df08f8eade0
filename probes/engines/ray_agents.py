"""Ends Ray's agents with the process that started Ray here, even if that is killed.

Most of Ray ends with it at once; its agents would wait for a minute for a server that has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys

_END = """\
import contextlib, signal, sys
sys.stdin.read()
for handle in map(int, sys.argv[1:]):
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
"""


def end_agents_with_driver() -> subprocess.Popen[bytes] | None:
    """Start a process that ends them when its standard input is closed, by this process or its end.

    Returns:
        the process; None where Linux's handles of processes are missing.
    """
    if sys.platform != "linux":
        return None
    import psutil  # type: ignore[import-untyped]  # Ray brings it along

    handles: list[int] = []
    try:
        for raylet in psutil.Process().children():
            if raylet.name() == "raylet":
                # Unlike numbers, handles never come to mean other processes.
                handles += [os.pidfd_open(agent.pid) for agent in raylet.children()]
        command = [sys.executable, "-Sc", _END, *map(str, handles)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=handles, start_new_session=True
        )
    except (OSError, psutil.Error):
        return None
    finally:
        for handle in handles:
            os.close(handle)
