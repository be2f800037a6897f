"""Sample paths: how f_D plus Gaussian-process noise is computed, exactly, for each family of kernels."""
