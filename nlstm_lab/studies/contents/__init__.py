"""What each memory carries: properties of the text that can be read off it linearly. Notebook 94."""
