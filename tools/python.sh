#!/usr/bin/env bash
# Prints the Python to build the virtual environment with: the first of the usual names that is 3.11 or newer.
set -u
for name in python3.11 python3.12 python3.13 python3; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "$name"
        exit 0
    fi
done
