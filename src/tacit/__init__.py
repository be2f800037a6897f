"""tacit."""
