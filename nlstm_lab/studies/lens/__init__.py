"""What each memory alone would predict, now and some characters ahead. Notebook 95."""
