"""Pages drawn from the documents of earlier runs."""
