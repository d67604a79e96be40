"""Products with few rows or columns."""
