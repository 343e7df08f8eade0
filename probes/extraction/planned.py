"""A model without its weights, of which `--dry-run` asks what it would compute."""

from __future__ import annotations

from typing import Any

import torch

from probes.compute.devices import MAP, pick_device
from probes.extraction.encoder import Encoder
from probes.extraction.inspection import declared_causal
from probes.tasks.task import Sublayer


class PlannedEncoder(Encoder):
    """A model on torch's device "meta": with shapes, but no numbers, so that it cannot read texts.

    What `Encoder` finds in a small pass is taken from the configuration.

    Attributes:
        device: the one that it would run on; of "map", whose devices depend on the weights, the
            CPU.
    """

    def _place(self, model: Any, device: str) -> torch.device:
        return torch.device("cpu") if device == MAP else torch.device(pick_device(device))

    def require(self, site: Sublayer) -> None:
        """Nothing is known of its sites."""

    def _try_out(self, name: str, n_embeddings: int) -> tuple[int, int, bool]:
        config = self.model.config.get_text_config()
        return config.num_hidden_layers, config.hidden_size, declared_causal(self.model)
