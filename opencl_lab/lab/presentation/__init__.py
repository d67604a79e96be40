"""Measuring implementations against each other: rows, tables, plots."""
