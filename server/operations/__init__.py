"""What an operator sets and sees: configuration, logs, metrics, memory and the data folder."""
