"""Tables, plots and comparisons of measured rows."""
