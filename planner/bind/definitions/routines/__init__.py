"""CREATE, ALTER and DROP of functions, and of extensions that bring functions and types."""
