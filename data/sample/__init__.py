"""The embedded corpus `sample`; data/cards/sample.md says how its files were made."""
