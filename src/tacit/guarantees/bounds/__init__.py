"""One file a bound."""
