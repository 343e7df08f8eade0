"""The embedded corpus `sample`; docs/sample-corpus.md says how its files were made."""
