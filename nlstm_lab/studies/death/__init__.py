"""When memory cells die in training, and what keeps them alive. Notebook 93."""
