"""What "A Primer in BERTology" says about vectors, attention heads and layers.

Rogers et al. 2020, arXiv 2002.12327v1.
"""

from __future__ import annotations

from probes.boards.claims.head_claims import HEAD_CLAIMS
from probes.boards.claims.layer_claims import LAYER_CLAIMS
from probes.boards.claims.vector_claims import VECTOR_CLAIMS

CLAIMS = (*VECTOR_CLAIMS, *HEAD_CLAIMS, *LAYER_CLAIMS)
"""In the order of its sections."""
