#!/usr/bin/env bash
# Tests operations, kernels, files, the report, the tuner and ranks with the least versions that setup.cfg
# allows, and with the newest of everything on the newest Python of Debian. As root, a quarter of an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The user's cache of uv may have an older build of this folder.
export UV_CACHE_DIR="$work/cache" OCLAB_TEST_CONFIGS=default
parts=$(ls tests/test_{matrix,docs_code,files,report,cli_process,cli_source,cli_tune,over_ranks}.py)
status=0
# Old packages use what newer ones of others deprecate.
tests() { "$1" -m pytest -q -n auto -W default::DeprecationWarning "${@:2}" || status=1; }

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install -q uv
uv() { "$work/tools/bin/uv" "$@"; }
uv venv -q --python 3.10 "$work/least" 2>/dev/null || uv venv -q --python 3.11 "$work/least"
least() { uv pip install -q --python "$work/least" --resolution lowest-direct "$@"; }
least '.[pocl,mpi,test]'
uv pip freeze --python "$work/least"
python="$work/least/bin/python"
"$python" tools/rendered_kernels.py >/dev/null || status=1 # every template, those for GPUs too
tests "$python" $parts
least '.[intel]'
OCLAB_DEVICE="Intel(R) OpenCL" tests "$python" tests/test_matrix.py

apt-get install -y -q --no-install-recommends debootstrap >/dev/null
root="$work/sid"
debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev,python3-venv sid "$root" >/dev/null
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mkdir "$root/work"
git ls-files | tar -T - -cf - | tar -C "$root/work" -xf -
cat >"$root/python" <<END
#!/usr/bin/env bash
# The Python of this folder. The mounts end with it.
[ "\${OCLAB_SID:-}" ] || OCLAB_SID=1 exec unshare --mount "\$0" "\$@"
for folder in dev proc sys; do mount --rbind /\$folder "$root/\$folder"; done
exec chroot "$root" env -C /work PATH=/venv/bin:/usr/bin python3 "\$@"
END
chmod +x "$root/python"
"$root/python" -m venv /venv
"$root/python" -m pip install -q '.[pocl,mpi,test]'
"$root/python" -VV
"$root/python" -m pip freeze
tests "$root/python" $parts
exit $status
