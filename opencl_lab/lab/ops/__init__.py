"""The operations of the lab: data, references, tolerances, files."""
