#!/usr/bin/env bash
# Makes sure that a Java runtime serves Spark (17 or newer): installs Debian's where it may, else says in one line what
# to install. Always succeeds: without Java the server runs on the embedded engine alone.
set -u
. "$(dirname "$0")/apt.sh"

java_serves_spark() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java version
    version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$version" ] && [ "$version" -ge 17 ]
}

java_serves_spark && exit 0
echo "installing a Java runtime for Spark (openjdk-17-jre-headless) ..."
apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
java_serves_spark ||
    echo "Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless. Until then the embedded engine works alone."
exit 0
