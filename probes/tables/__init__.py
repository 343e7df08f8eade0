"""Charts as functions of a frame, and the files that they are written to."""
