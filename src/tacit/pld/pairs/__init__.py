"""Pairs of distributions, one file a kind; README.md of the room lists the methods of a new kind."""
