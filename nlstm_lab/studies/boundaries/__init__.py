"""Where an HM-RNN ends a segment, and whether anything ends there (Chung, Ahn & Bengio 2016). Notebooks 20, 21, 22."""
