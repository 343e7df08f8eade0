"""What a run leaves out, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from probes.common.terminal import progress


@dataclass
class Omissions:
    """Collected while a run goes on, and reported at its end.

    Attributes:
        skipped: by task, why the corpus does not serve it, though nobody asked for it by name.
        unserved: by model and task, the same of tasks that were asked for.
        unmade: by unit, why evidence that was asked for by name is not made.
        failed: by model, task and probe family, what a task or plug-in of the user did wrong.
    """

    skipped: dict[str, str] = field(default_factory=dict)
    unserved: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unmade: dict[str, str] = field(default_factory=dict)

    def update(self, other: Omissions) -> None:
        """Add what another process has left out, and has reported."""
        self.skipped |= other.skipped
        self.unserved |= other.unserved
        self.failed |= other.failed
        self.unmade |= other.unmade

    def skip(self, task: str, why: str) -> None:
        """Leave out a task that the corpus does not serve."""
        self.skipped[task] = why
        progress.say(f"skipped {task}: {why}", "skipped", task=task)

    def not_made(self, what: str, why: str) -> None:
        """Leave out evidence that was asked for by name, and say so once."""
        if what not in self.unmade:
            self.unmade[what] = why
            progress.say(f"left out {what}: {why}", "left out")

    def not_served(self, model: str, task: str, why: str) -> None:
        """Report a task that was asked for and that the corpus does not serve after all."""
        self.unserved[f"{model} · {task}"] = why
        progress.warn(f"failed  {task}: {why}")

    def fail(self, model: str, what: str, why: str) -> None:
        """Report a failure that costs `what` alone; the run goes on."""
        if self.failed.get(f"{model} · {what}") == why:
            return
        self.failed[f"{model} · {what}"] = why
        progress.warn(f"failed  {what}: {why}")
