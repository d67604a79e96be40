"""The database of tuned configurations: the package's and the user's own."""
