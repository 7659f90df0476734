"""Handwriting in segments, and written by a network (Chung, Ahn & Bengio 2016, figure 5). Notebook 23."""
