"""The entropy of each attention head, with a collector: no attention map is stored.

    python run_probes.py --model MODEL --include head_entropy.py --measurements head_entropy

A collector sees every forward pass, and decides what to keep. Texts come in shards: groups of whole
texts that are stored together. Once a shard is stored, the model does not read its texts again.
"""

import torch

from probes import AttentionCollector, Cells, Pivot, Row, measurement


class Entropies(AttentionCollector):
    """Mean entropy of each head's attention, in nats. Per text (blocks, heads)."""

    name = "head entropy"
    parts = ("entropy",)

    def bytes_of(self, shard, model):
        return 4 * len(shard.texts) * model.n_layers * 16

    def start(self, shard, pieces):
        self.sums, self.tokens = 0.0, torch.zeros(len(shard.texts))

    def prepare(self, windows):
        self.blocks = []

    def take(self, block, maps, visible):
        self.blocks.append(torch.special.entr(maps).sum(-1))  # (windows, heads, tokens)

    def add(self, windows, output):
        real = windows.inputs["attention_mask"]  # padding is 0
        entropy = torch.stack(self.blocks, dim=1).cpu() * real[:, None, None]
        sums = torch.zeros(len(self.tokens), *entropy.shape[1:3])
        # A text that does not fit into the model's window comes in several.
        self.sums = self.sums + sums.index_add_(0, windows.text, entropy.sum(-1))
        self.tokens.index_add_(0, windows.text, real.sum(1).float())

    def finish(self):
        return {"entropy": self.sums / self.tokens[:, None, None]}


@measurement(
    "head_entropy",
    extent=lambda request: {layer: 1 for layer in request.layers if layer > 0},
    collector=lambda corpus, layers, options: Entropies(),
    shows=(Pivot(columns=("head",)), Cells("head_entropy", "mean_entropy", across="head")),
)
def head_entropy(context):
    """Mean entropy of each attention head."""
    means = context.of_sentences("test", "entropy").mean(0)  # (blocks, heads)
    for layer in context.layers:
        for head, mean in enumerate(means[layer - 1], start=1):
            yield Row("mean_entropy", mean, layer, axes={"head": head})
