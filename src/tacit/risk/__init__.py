"""Risk: optimal counts, what no mechanism can go below, and the price of privacy."""
