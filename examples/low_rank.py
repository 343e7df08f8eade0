"""A probe family: linear probes of low rank.

    python run_probes.py --model MODEL --include low_rank.py --probes linear,low_rank

Many probes are fitted at once. A cell is one probe of a layer, with its labels and seed. Shapes:

- features: (layers, examples, H). Do not write to them: other steps and cells read them, too;
- parameters: weights (layers, cells, out, in) and biases (layers, cells, out) in turn. Weights are
  penalised;
- outputs: (layers, cells, classes, examples).

Autograd computes gradients. If training is too slow, override `backward`, as
`probes/training/family.py` does, and test it against autograd (`tests/training/test_family.py`).
If the outputs are W x + b, set `convex = True`: such probes are fitted until they converge.
"""

import torch

from probes import ProbeFamily, ProbeSpec, probe_family, shared_input

SPEC = ProbeSpec(
    family="low_rank",  # what --probes calls it
    hidden=8,  # here the rank
    l2=(30.0,),  # L2 strength times the number of training examples
    learning_rate=0.01,
    epochs=6,
    min_steps=600,  # at least this many steps, even with few examples
    checks=12,  # times that the dev loss is computed; the best parameters are kept
)


@probe_family(SPEC)
class LowRank(ProbeFamily):
    """f(x) = V (U x + a) + b, where U has few rows."""

    def __init__(self, spec):
        self.rank = spec.hidden

    def initial(self, n_layers, seeds, n_features, n_outputs):
        parameters = []
        for out, of in ((self.rank, n_features), (n_outputs, self.rank)):
            drawn = [
                torch.randn(out, of, generator=torch.Generator().manual_seed(s)) for s in seeds
            ]
            parameters.append((torch.stack(drawn) / of**0.5).repeat(n_layers, 1, 1, 1))
            parameters.append(torch.zeros(n_layers, len(seeds), out))
        return parameters

    def outputs(self, parameters, features):
        u, a, v, b = parameters
        return v @ shared_input(features, u, a) + b[..., None]
