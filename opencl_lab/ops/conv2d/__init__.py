"""2D convolution: the problem, its algorithms, the operation, and the public function."""
