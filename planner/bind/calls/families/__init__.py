"""Functions whose calls need more than a signature, by the family of their types: arrays, JSON, texts, times, ..."""
