"""The data sets of the documents and the tasks built from them."""
