"""From tasks, a corpus and a tokenizer to what a measurement can use."""
