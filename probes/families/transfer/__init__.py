"""Transfer: stored probes of one corpus, applied to another."""
