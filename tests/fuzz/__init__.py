"""A fuzzer of neighbours: two tables that differ in one unit must behave alike, outside of the noise."""
