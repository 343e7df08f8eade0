"""Free memory within control groups, on made-up trees of the files of Linux."""

import pytest

from probes.compute import memory
from probes.compute.memory import free_in_groups, free_memory

GB = 1 << 30
UNLIMITED = 9223372036854771712
V1_POINT, V2_POINT = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
V1_OTHER = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V2_MOUNT = UNIFIED.replace("/unified", "")


def v1_mount(top):
    return f"35 31 0:32 {top} {V1_POINT} rw,relatime - cgroup cgroup rw,memory"


def tree(root, own, mounts, groups):
    """Write the files of a process: its groups, what is mounted, and the files of each group."""
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text("\n".join(own) + "\n")
    mounts = ["22 1 8:1 / / rw - ext4 /dev/sda rw", *mounts]
    (proc / "mountinfo").write_text("\n".join(mounts) + "\n")
    for group, files in groups.items():
        folder = root / group.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(f"{content}\n")
    return root


def v2(limit, used, **more):
    return {"memory.max": limit, "memory.current": used, **more}


def v1(limit, used):
    return {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": used}


CACHED = {"memory.stat": f"anon {3 * GB}\ninactive_file {4 * GB}\nactive_file 0"}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        (v2(8 * GB, 3 * GB), 5 * GB),
        # Of 7 GB in use, 4 are cached files that the kernel drops when memory is needed.
        (v2(8 * GB, 7 * GB, **CACHED), 5 * GB),
        # A group that is slowed down beyond a limit.
        (v2("max", GB, **{"memory.high": 4 * GB}), 3 * GB),
    ],
)
def test_a_container_of_version_2_sees_its_own_group_at_the_top(files, free, tmp_path):
    assert free_in_groups(tree(tmp_path, ["0::/"], [V2_MOUNT], {V2_POINT: files})) == [free]


def test_every_group_on_the_way_up_counts(tmp_path):
    """SLURM: no limit on the task, 16 GB on the step, 12 GB of which 9 are used on the job."""
    job = "/system.slice/slurmstepd.scope/job_7"
    groups = {
        f"{V2_POINT}{job}": v2(12 * GB, 9 * GB),
        f"{V2_POINT}{job}/step_0": v2(16 * GB, 2 * GB),
        f"{V2_POINT}{job}/step_0/user/task_0": v2("max", GB),
        f"{V2_POINT}/system.slice/other": v2(1, 1),
    }
    root = tree(tmp_path, [f"0::{job}/step_0/user/task_0"], [V2_MOUNT], groups)
    assert free_in_groups(root) == [14 * GB, 3 * GB]


def test_a_group_of_version_1(tmp_path):
    """8 GB on the job; the root's limit is the greatest number there is."""
    groups = {
        V1_POINT: v1(UNLIMITED, 20 * GB),
        f"{V1_POINT}/slurm/job_7": v1(8 * GB, 2 * GB),
        f"{V1_POINT}/slurm": v1(UNLIMITED, 6 * GB),
    }
    own = ["9:name=systemd:/", "4:memory:/slurm/job_7", "1:cpu,cpuacct:/other", "0::/"]
    root = tree(tmp_path, own, [V1_OTHER, v1_mount("/"), UNIFIED], groups)
    assert min(free_in_groups(root)) == 6 * GB


@pytest.mark.parametrize(
    ("top", "own", "free"),
    [
        # Docker: the path is the host's, what is mounted begins at the container.
        ("/docker/abc", "/docker/abc", [7 * GB]),
        ("/", "/docker/abc", [7 * GB]),
        ("/docker/abc", "/docker/abc/inner", [GB, 7 * GB]),
    ],
)
def test_a_container_of_version_1(top, own, free, tmp_path):
    groups = {V1_POINT: v1(8 * GB, GB), f"{V1_POINT}/inner": v1(2 * GB, GB)}
    assert free_in_groups(tree(tmp_path, [f"4:memory:{own}"], [v1_mount(top)], groups)) == free


def test_a_system_without_control_groups(tmp_path):
    assert free_in_groups(tmp_path) == []


@pytest.mark.parametrize(("free", "least"), [([12345, 10**18], 12345), ([-5], 0)])
def test_the_least_of_all_bounds_what_is_free(free, least, monkeypatch):
    monkeypatch.setattr(memory, "free_in_groups", lambda: free)
    assert free_memory() == least
