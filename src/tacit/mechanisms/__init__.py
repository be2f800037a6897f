"""Mechanisms: numbers in, noisy numbers out, each with its bound, its error and its law of noise."""
