"""What `python -m probes` does, one sub-command per module."""
