#!/usr/bin/env bash
# Makes sure that the clients that the tests drive are there: pgjdbc, node-postgres (and with it Node), and PgBouncer, whose
# service is not started; and bindfs, a file system that can be made to stand still. Always succeeds: without them their
# tests are skipped and say so.
set -u
. "$(dirname "$0")/apt.sh"

POLICY=/usr/sbin/policy-rc.d

# invoke-rc.d asks this file whether a package may start its service.
forbid_services() {
    [ -e "$POLICY" ] && return 1
    as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$POLICY && chmod 755 $POLICY"
}

[ -e /usr/share/java/postgresql.jar ] || apt_install libpostgresql-jdbc-java ||
    echo "tests of pgjdbc are skipped: apt-get install libpostgresql-jdbc-java"
# Where Node is another one than Debian's, node-postgres is npm's.
NODE=$(dirname "$0")/../.venv/node
[ -d /usr/share/nodejs/pg ] || [ -d "$NODE/node_modules/pg-cursor" ] || apt_install node-pg 2>/dev/null ||
    npm install --silent --prefix "$NODE" pg@8.23.1 pg-cursor@2.22.0 >/dev/null 2>&1 ||
    echo "tests of node-postgres are skipped: apt-get install node-pg"
command -v bindfs >/dev/null || apt_install bindfs || echo "tests of a storage that hangs are skipped: apt-get install bindfs"
[ -x /usr/sbin/pgbouncer ] && exit 0
if forbid_services; then
    trap 'as_root rm -f "$POLICY"' EXIT
fi
apt_install pgbouncer || echo "tests of PgBouncer are skipped: apt-get install pgbouncer"
[ -d /run/systemd/system ] && as_root systemctl disable pgbouncer >/dev/null 2>&1
exit 0
