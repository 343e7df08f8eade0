"""From a configuration to a plan of jobs, and the places where they are made."""
