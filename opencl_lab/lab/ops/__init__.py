"""What operations are to the lab: data, references, tolerances, files."""
