#!/usr/bin/env bash
# Unpack the compilers of AMD's and Intel's GPUs from Debian's packages into a folder, and install nothing:
#
#   tools/offline_compilers.sh DIR && export OCLAB_OFFLINE=DIR
#
# They need no GPU, and no driver appears. Debian 12 has them: LLVM 15 with AMD's device libraries, and the
# compiler of Intel's driver. DIR/versions has the versions of the packages.
set -euo pipefail
mkdir -p "$1" && cd "$1"
apt-get download -q clang-15 libclang-cpp15 libllvm15 libclang-common-15-dev rocm-device-libs \
    libz3-4 libedit2 libbsd0 libmd0 libxml2 libicu72 \
    intel-opencl-icd libigc1 libigdfcl1 libopencl-clang14 libclang-cpp14 libllvm14 libllvmspirvlib14 libigdgmm12
for package in *.deb; do
    dpkg -x "$package" .
    dpkg-deb -W "$package"
done >versions
rm ./*.deb
