"""The sub-commands of `python -m probes`, one file each."""
