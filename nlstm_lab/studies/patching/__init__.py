"""Which memory carries what happened n characters ago: patch maps. Notebook 95."""
