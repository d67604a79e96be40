"""Finding the fastest configuration of an algorithm on the device at hand, safely."""
