"""The structural probes of a layer, their losses and gradients.

A probe of rank k is a matrix B of k rows: ‖B(h_i − h_j)‖² is to be the distance of two words in the
tree, or ‖B h_i‖² the depth of a word (Hewitt & Manning 2019, sections 2.2 and 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from probes.measurements.structure.sentence_batches import Batch

Kind = Literal["distance", "depth"]

SAMPLES = 3
"""Bootstrap samples of training documents, at the reported rank."""


class Probe(NamedTuple):
    """What one probe is fitted to.

    Attributes:
        kind: whether it predicts distances of words, or their depths.
        rank: rows of its matrix.
        control: the draw of control trees that it is fitted to, from 1; 0 are gold trees.
        sample: the bootstrap sample of training documents that it is fitted to; 0 is all of them.
    """

    kind: Kind
    rank: int
    control: int = 0
    sample: int = 0


def distances(projected: Tensor) -> Tensor:
    """Squared distances of projected words. Shape (b, n, k) to (b, n, n)."""
    products = projected @ projected.transpose(1, 2)
    lengths = products.diagonal(dim1=1, dim2=2)
    return lengths[:, :, None] + lengths[:, None, :] - 2 * products


def depths(projected: Tensor) -> Tensor:
    """Squared lengths of projected words. Shape (b, n, k) to (b, n)."""
    return projected.square().sum(-1)


def losses(probes: Sequence[Probe], projected: Tensor, batch: Batch) -> Tensor:
    """The loss of each probe on each sentence.

    Σ_ij |distance − gold| / n² over the pairs, or Σ_i |depth − gold| / n over the words of a
    sentence of n.

    Args:
        projected: the words by all rows of all probes, one after the other. Shape (b, n, R).

    Returns:
        shape (probes, b).
    """
    words = batch.word_weights
    pairs = words[:, :, None] * words[:, None, :]
    found = []
    for probe, z in zip(probes, _parts(probes, projected), strict=True):
        tree = probe.control
        if probe.kind == "distance":
            found.append(((distances(z) - batch.distances[tree]).abs() * pairs).sum((1, 2)))
        else:
            found.append(((depths(z) - batch.depths[tree]).abs() * words).sum(1))
    return torch.stack(found)


def slopes(
    probes: Sequence[Probe], projected: Tensor, batch: Batch, weights: dict[int, Tensor]
) -> Tensor:
    """The gradient of Σ_s weight_s · loss_s with respect to the projected words.

    By hand: with autograd a step takes twice as long, most of it in pairs of words.

    Args:
        projected: as of `losses`.
        weights: of the sentences, by bootstrap sample. Each (b,).

    Returns:
        shape (b, n, R).
    """
    words = batch.word_weights
    pairs = words[:, :, None] * words[:, None, :]
    found = torch.empty_like(projected)
    for probe, z, slope in zip(
        probes, _parts(probes, projected), _parts(probes, found), strict=True
    ):
        tree, weight = probe.control, weights[probe.sample]
        if probe.kind == "distance":
            signs = (distances(z) - batch.distances[tree]).sign_().mul_(pairs)
            signs *= weight[:, None, None]
            # Σ_ij s_ij ‖z_i − z_j‖² = 2 tr(Zᵀ L Z), where L is the Laplacian of s.
            slope.copy_((torch.diag_embed(signs.sum(-1)) - signs) @ z).mul_(4)
        else:
            signs = (depths(z) - batch.depths[tree]).sign_() * words * weight[:, None]
            slope.copy_(z).mul_(2 * signs[..., None])
    return found


def _parts(probes: Sequence[Probe], rows: Tensor) -> tuple[Tensor, ...]:
    """The part of each probe. Each (b, n, rank)."""
    found: tuple[Tensor, ...] = rows.split([probe.rank for probe in probes], dim=-1)
    return found
