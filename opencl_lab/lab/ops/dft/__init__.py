"""What the lab needs of dft."""
