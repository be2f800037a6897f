"""Exact numbers: the basis of `noise`, `guarantees` and all rooms that use them.

    checks       parameters that are valid from birth
    data_classes the standard data classes, whose methods are made when they are first needed
    rationals    parameters as exact rationals
    integers     vectors of integers that never wrap around
    rounding     directed rounding, and certified intervals
    balls        ball arithmetic at rising precision, under the one lock
    enclosures   arrays of floats with proved radii
    matrices     matrices of exact numbers, applied to either kind of real
    threads      one thread for small linear algebra

No module here uses privacy, data or randomness. Import from the modules: some need NumPy or FLINT, some neither.
"""
