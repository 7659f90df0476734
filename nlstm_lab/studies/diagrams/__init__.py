"""The units drawn: figures 1 and 2 of Nested LSTMs and of HM-RNNs, Madsen's diagrams (2018). Notebooks 10, 20."""
