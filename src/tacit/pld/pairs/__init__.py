"""Pairs of distributions, one file a kind; README.md of the room says what a new kind answers."""
