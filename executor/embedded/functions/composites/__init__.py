"""Values made of other values: arrays with a shape, ranges, multiranges."""
