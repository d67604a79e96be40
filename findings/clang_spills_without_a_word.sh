#!/usr/bin/env bash
# Clang compiles a kernel for AMD's GPUs that needs more registers than there are, prints nothing, even with
# -Wall, and succeeds: only remarks that are off by default, or a note in the binary, tell that registers are
# spilled to memory. LLVM 15.0.6 with rocm-device-libs 5.2.3, of Debian 12, on x86-64.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -q clang-15=1:15.0.6-4+b1 libclang-cpp15=1:15.0.6-4+b1 libllvm15=1:15.0.6-4+b1 \
    libclang-common-15-dev=1:15.0.6-4+b1 rocm-device-libs=5.2.3-2 libz3-4 libedit2 libbsd0 libmd0 libxml2 libicu72 >log 2>&1 ||
    { cat log; exit 1; }
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu"
cat >kernel.cl <<'END'
__kernel void f(__global const float *x, __global float *y)
{
    float a[200];
    const int i = get_global_id(0);
#pragma unroll
    for (int j = 0; j < 200; ++j)
        a[j] = x[i * 200 + j];
    barrier(CLK_GLOBAL_MEM_FENCE); /* all are there at once */
#pragma unroll
    for (int j = 0; j < 200; ++j)
        y[i * 200 + j] = a[j] * a[199 - j] + a[(7 * j + 3) % 200];
}
END
compile() {
    usr/bin/clang-15 -x cl -c kernel.cl -o kernel.o -cl-std=CL1.2 -O3 -Wall -target amdgcn-amd-amdhsa -mcpu=gfx1030 \
        --rocm-path="$LD_LIBRARY_PATH" -Xclang -finclude-default-header "$@" 2>&1
}
said=$(compile)
seen="by default: ${said:-nothing}
$(compile -Rpass-analysis=kernel-resource-usage | grep -o 'VGPRs Spill: [1-9]' | sed 's/[1-9]/some/')"
expected="by default: nothing
VGPRs Spill: some"
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
