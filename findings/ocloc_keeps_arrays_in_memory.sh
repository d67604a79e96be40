#!/usr/bin/env bash
# Intel's offline compiler warns of registers that it spills, and succeeds; of an array that it keeps in memory
# throughout, which is as slow, it says nothing. Its binary has the size of that memory for both, and not how
# much was spilled. ocloc of intel-opencl-icd 22.43.24595.41 with libigc1 1.0.12504.6, of Debian 12, on x86-64.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -q intel-opencl-icd=22.43.24595.41-1 libigc1=1.0.12504.6-1+deb12u1 libigdfcl1=1.0.12504.6-1+deb12u1 \
    libopencl-clang14=14.0.0-4 libllvm14=1:14.0.6-12 libllvmspirvlib14=14.0.0-5 libigdgmm12=22.3.3+ds1-1 >log 2>&1 ||
    { cat log; exit 1; }
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu:$work/usr/lib/x86_64-linux-gnu/intel-opencl"
cat >spills.cl <<'END'
__kernel void f(__global const float *x, __global float *y)
{
    float a[64], b[64];
    const int i = get_global_id(0);
#pragma unroll
    for (int j = 0; j < 64; ++j) {
        a[j] = x[i + j * 1000];
        b[j] = x[i + j * 999 + 7];
    }
#pragma unroll
    for (int j = 0; j < 64; ++j)
#pragma unroll
        for (int k = 0; k < 64; ++k)
            b[k] = fma(a[j], b[(k + j) % 64], a[k]);
#pragma unroll
    for (int j = 0; j < 64; ++j)
        y[i + j * 1000] = b[j] + a[63 - j];
}
END
cat >array.cl <<'END'
__kernel void f(__global float *x, int n)
{
    float y[150];
    for (int i = 0; i < 150; ++i)
        y[i] = x[i * n];
    for (int i = 0; i < 150; ++i)
        x[i * n + 1] = sin(y[i] * y[149 - i]);
}
END
seen=$(for name in spills array; do
    usr/bin/ocloc compile -file $name.cl -device pvc -output $name -options -cl-std=CL1.2 \
        -internal_options -ze-allow-zebin >said 2>&1
    echo "$name: status $?, $(grep -oE 'spilled|Build succeeded' said | paste -sd' ')," \
        "$(grep -ao 'type: *scratch' ${name}_*.bin | wc -l) kinds of memory," \
        "$(grep -aoi spill ${name}_*.bin | wc -l) words of spills"
done)
expected="spills: status 0, spilled Build succeeded, 1 kinds of memory, 0 words of spills
array: status 0, Build succeeded, 1 kinds of memory, 0 words of spills"
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
