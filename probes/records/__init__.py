"""What a record and a table are; how records are named, keyed, written and read."""
