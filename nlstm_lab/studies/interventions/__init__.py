"""What is lost when a memory is cut, and how far back a network looks. Notebook 91."""
