"""What the lab needs of sort."""
