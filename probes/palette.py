"""The colours of models, in pages and figures alike."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8639a", "#c08a00", "#3f9fdb")
"""After Okabe & Ito 2008, the light ones darker; symbols tell more than six models apart."""
