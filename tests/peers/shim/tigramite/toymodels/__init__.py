"""Series with known links."""
