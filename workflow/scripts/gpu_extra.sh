#!/bin/sh
# Print the extra for this machine's NVIDIA driver: cuda13, cuda12, or none.
cuda=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9][0-9]*\).*/\1/p' | head -n 1)
case "$cuda" in
    12) echo cuda12 ;;
    1[3-9]) echo cuda13 ;;
    *) echo none ;;
esac
