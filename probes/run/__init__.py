"""From a configuration to a plan and its units, and where units run."""
