"""What each memory carries: properties of the text that can be decoded from it linearly. Notebook 94."""
