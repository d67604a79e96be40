"""What the lab needs of select."""
