"""What a model says: probabilities of words under its own language-model head."""
