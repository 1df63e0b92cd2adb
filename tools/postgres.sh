#!/usr/bin/env bash
# Makes sure that PostgreSQL's server and clients are there for tests and benchmarks, and that none is left running by the
# installation. Always succeeds: without PostgreSQL the tests that compare with it are skipped and say so.
set -u
. "$(dirname "$0")/apt.sh"

postgres_is_there() {
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && command -v psql >/dev/null && command -v pgbench >/dev/null
}

postgres_is_there && exit 0
echo "installing PostgreSQL for the tests ..."
# Debian's package would create and start a cluster of its own; its common part first, told not to.
apt_install postgresql-common &&
    as_root sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
    apt_install postgresql postgresql-contrib || true
postgres_is_there || echo "tests and benchmarks beside PostgreSQL are skipped: apt-get install postgresql postgresql-contrib"
exit 0
