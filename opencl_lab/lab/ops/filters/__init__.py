"""Filters of images and volumes in the lab."""
