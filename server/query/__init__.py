"""Running one statement for one client, and moving the rows of COPY."""
