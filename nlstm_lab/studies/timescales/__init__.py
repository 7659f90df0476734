"""How slow each memory is, beside networks without training and texts without order. Notebook 90."""
