"""Laws between guarantees: composition, conversion, groups, sampling, budgets; each names its theorem."""
