# Sourced. `as_root COMMAND...` runs a command as root where that is possible; `apt_install PACKAGE...` installs Debian
# packages. Where they cannot they fail, and their callers say what to do.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        return 1
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@" 2>/dev/null # nobody there who could type a password
    fi
}

apt_install() {
    local log
    command -v apt-get >/dev/null || return 1
    log=$(mktemp)
    as_root apt-get update -qq >"$log" 2>&1 || true
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1; then
        tail -n 3 "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}
