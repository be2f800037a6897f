"""What is promised: bounds, units, conditions, and the laws between them. No data, no randomness, no I/O."""
