"""Which earlier characters a prediction depends on, and how gradients vanish (Madsen 2018). Notebooks 32, 33."""
