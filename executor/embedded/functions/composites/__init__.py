"""Values made of others: arrays with a shape, ranges, multiranges."""
