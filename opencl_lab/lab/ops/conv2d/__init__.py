"""What the lab needs of conv2d."""
