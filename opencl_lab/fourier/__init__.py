"""The fast Fourier transform as a library below the operations."""
