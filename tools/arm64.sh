#!/usr/bin/env bash
# Makes a folder with a 64-bit ARM Debian and its PoCL, in which QEMU runs the matrix on x86-64. As root:
#
#   tools/arm64.sh DIR && python tools/runtime_matrix.py run pocl-arm64 --python DIR/python
#
# Python and the linker, which PoCL starts, are emulated, and nothing else can be started there: no
# binfmt is needed, but there are no C references and no child processes.
set -euo pipefail
[ $# -eq 1 ] || { sed -n 2,4p "$0"; exit 1; }
root=$(realpath -m "$1") repository=$(realpath "$(dirname "$0")/..")
qemu=/usr/bin/qemu-aarch64-static triple=aarch64-linux-gnu

export DEBIAN_FRONTEND=noninteractive
apt-get install -y -q --no-install-recommends qemu-user-static debootstrap gcc libc6-dev >/dev/null
. /etc/os-release
debootstrap --arch=arm64 --variant=minbase --foreign --include=python3,pocl-opencl-icd,binutils \
    "$VERSION_CODENAME" "$root" >/dev/null
for package in "$root"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
cp $qemu "$root$qemu"

# PoCL starts `ld`: a program of this processor, which has QEMU run the linker.
rm -f "$root/usr/bin/ld"
gcc -static -O1 -x c -o "$root/usr/bin/ld" - <<END
#include <unistd.h>
int main(int count, char **given) {
    char *all[1024] = {"$qemu", "/usr/bin/$triple-ld.bfd"};
    for (int i = 1; i < count && i < 1022; i++) all[i + 1] = given[i];
    execv(all[0], all);
    return 127;
}
END

# Wheels for the Python there, of what the package and its tests need.
version=$(basename "$root"/usr/lib/python3.*)
python3 -m pip install -q --target "$root/site" --only-binary=:all: --implementation cp \
    --python-version "${version#python}" --platform manylinux_2_28_aarch64 \
    --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    click mako matplotlib msgspec numpy nvidia-ml-py pillow platformdirs pyopencl \
    pytest rich scipy threadpoolctl

# A processor's description: PoCL reads it, and the real one is another's.
for number in $(seq 0 $(($(nproc) - 1))); do
    printf 'processor\t: %s\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n' "$number"
    printf 'CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n'
done >"$root/cpuinfo"
mkdir -p "$root"{/proc,/sys,/tmp,/dev,"$repository"}
for node in "null 3" "zero 5" "urandom 9"; do
    [ -e "$root/dev/${node% *}" ] || mknod -m 666 "$root/dev/${node% *}" c 1 "${node#* }"
done

cat >"$root/python" <<END
#!/usr/bin/env bash
# The Python of this folder, emulated, in the current directory. The mounts end with it.
set -e
if [ -z "\${OCLAB_ARM64:-}" ]; then OCLAB_ARM64=1 exec unshare --mount "\$0" "\$@"; fi
mount -t proc proc "$root/proc"
mount --bind "$root/cpuinfo" "$root/proc/cpuinfo"
for folder in /sys /tmp "$repository"; do mount --bind "\$folder" "$root\$folder"; done
mapfile -t kept < <(env | grep -E '^(OCLAB|POCL)_')
exec env -i "\${kept[@]}" HOME=/tmp PATH=/usr/bin PYTHONPATH="\$PYTHONPATH:/site" \\
    LD_LIBRARY_PATH=/usr/lib/$triple OPENBLAS_NUM_THREADS=1 \\
    unshare --root "$root" --wd "\$PWD" $qemu /usr/bin/python3 "\$@"
END
chmod +x "$root/python"
echo "$root/python: $("$root/python" --version)"
