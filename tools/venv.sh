#!/usr/bin/env bash
# Makes the virtual environment $2 with the Python $1; installs Debian's python3-venv if that is what is missing.
set -eu
python=$1 target=$2
. "$(dirname "$0")/apt.sh"
if [ -z "$python" ]; then
    echo "Millstream needs Python 3.11 or newer: apt-get install python3" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    echo "installing $package (Python's venv module is missing) ..."
    apt_install "$package" || { echo "Python's venv module is missing: apt-get install $package" >&2; exit 1; }
fi
"$python" -m venv "$target"
