"""What single cells do along a text: figures 3 and 4 of Nested LSTMs (Moniz & Krueger 2017). Notebook 12."""
