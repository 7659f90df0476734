"""Where a network comes to rest under a constant input, and how slowly it moves near there. Notebook 95."""
