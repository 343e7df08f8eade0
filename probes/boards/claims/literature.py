"""What "A Primer in BERTology" says about layers and vectors.

Rogers et al. 2020, arXiv 2002.12327v1.
"""

from __future__ import annotations

from probes.boards.claims.layer_claims import LAYER_CLAIMS
from probes.boards.claims.vector_claims import VECTOR_CLAIMS

CLAIMS = (*VECTOR_CLAIMS, *LAYER_CLAIMS)
"""In the order of its sections."""
