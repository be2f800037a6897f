"""Pictures of releases, drawn as SVG that fits any width: one file a kind."""
