"""Matrix products: the problem, its algorithms, the operation, and the public function."""
