"""Attention. Where do the heads of a model attend?

- Which heads attend to neighbours, to special tokens, or to nearly everything?
- Which heads find syntactic relations or trees better than a fixed offset does?
- Do all heads together find trees that no single head finds?
- Which heads does fine-tuning change? Are the heads of a layer alike?
- How do heads attend to the other of two sentences? Is attention to separators a no-op?
- Does a head link a predicate and its arguments, or a verb and its subject if another noun is
  nearer? Does it choose the antecedent of a mention?
"""

from __future__ import annotations

from probes.measurements.catalogue import Command, Family

FAMILY = Family(
    measurements={
        "attention": "attention",
        "head_mix": "head_mix",
        "attention_change": "head_comparison",
        "head_similarity": "head_comparison",
        "segment_attention": "segments",
        "attention_gradients": "separators",
        "antecedent_heads": "antecedent_heads",
        "role_heads": "role_heads",
        "subject_heads": "subject_heads",
        "subject_heads_of_pairs": "subject_heads",
    },
    commands={
        "heads": Command(
            "Show what attention heads do: entropy, patterns, and relations beside fixed offsets.",
            "attention",
            "tables",
        )
    },
    claims="claims",
)
