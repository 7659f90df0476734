"""What COPY saves, and what nesting costs. Notebook 92."""
