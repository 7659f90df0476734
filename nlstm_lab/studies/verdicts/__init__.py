"""How the verdicts on printed numbers and claims fall. Notebook 00."""
