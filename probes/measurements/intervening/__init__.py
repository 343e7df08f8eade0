"""What a model uses: passes in which something is disabled, or erased."""
