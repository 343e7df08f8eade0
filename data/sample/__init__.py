"""The embedded corpus `sample`: three files that `tools/write_sample.py` writes."""
