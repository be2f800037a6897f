"""Ways to open a table: files of two kinds, frames of this process, tables that have an engine already."""
