"""Transfer. Do probes that were trained on one corpus, or language, work on another?"""

from __future__ import annotations

from probes.measurements.catalogue import Family

FAMILY = Family(evidence={"corpus_transfer": "corpus_transfer"}, transfer="corpus_transfer")
