"""Fourier transforms, from the bottom up.

================================  ==================================================================
`passes`                          Plans of launches, for any length and layout; `conv2d` uses them,
                                  too.
`problem`, `solver`               What is transformed, and by which algorithm.
`fast`, `direct`                  The algorithms: by passes, and by the definition.
`transform`                       Arrays of either side along one axis.
`axes`                            Several axes as one plan, on one compute unit.
`functions`                       The public functions, and the signatures that they share.
================================  ==================================================================
"""
