#!/usr/bin/env bash
# Install Debian's SLURM, munge and MariaDB for tests/cluster/slurm.py, unless they are installed already.
set -euo pipefail
packages=(munge slurmctld slurmd slurm-client slurmdbd mariadb-server)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
fail() {
  echo "make test-slurm: $1; these packages are missing: ${missing[*]}" >&2
  exit 1
}
command -v apt-get >/dev/null || fail "there is no apt-get"
[ "$(id -u)" = 0 ] || fail "packages can only be installed by root"
export DEBIAN_FRONTEND=noninteractive
# The packages may start daemons. These are left alone, because the tests start their own daemons on other ports.
apt-get update -qq || fail "apt-get update failed"
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || fail "apt-get install failed"
