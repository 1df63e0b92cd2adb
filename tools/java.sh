#!/usr/bin/env bash
# Makes sure that a Java runtime serves Spark: installs Debian's where it may, else says in one line what to install.
# Always succeeds: without Java the server runs on the embedded engine alone. $1 is the project's Python.
set -u
python=$1
. "$(dirname "$0")/apt.sh"

java_serves_spark() { # as the server itself looks for one
    "$python" -c 'import os, sys; from executor.spark.java import Java, find_java
sys.exit(not isinstance(find_java(os.environ), Java))'
}

java_serves_spark && exit 0
echo "installing a Java runtime for Spark (openjdk-17-jre-headless) ..."
apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
java_serves_spark ||
    echo "Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless. Until then the embedded engine works alone."
exit 0
