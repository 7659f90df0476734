"""Which word a network suggests while it is written (Madsen 2018). Notebook 30."""
