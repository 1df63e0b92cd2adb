"""Types made of other types: arrays, ranges, multiranges and rows, with the codecs of their elements."""
