"""What is promised: bounds, units, conditions and the laws between them."""
