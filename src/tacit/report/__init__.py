"""Pictures and pages about guarantees and releases."""
