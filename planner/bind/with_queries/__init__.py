"""WITH: when its queries are bound and computed, and what a recursive one means."""
