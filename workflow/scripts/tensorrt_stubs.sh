#!/bin/sh
# Install TensorRT's type stubs into a folder of their own: tensorrt_stubs.sh PYTHON FOLDER
#
# Without their dependencies, which are TensorRT itself, and apart, since Python would take the stubs for TensorRT.
# Five signatures in them are no valid Python: a parameter called `in`, and one without a default behind one with it.
set -eu
"$1" -m pip install --require-hashes --no-deps --upgrade --target "$2" -r /dev/stdin <<REQUIREMENTS
tensorrt-stubs==10.13.0.35.1 --hash=sha256:749a36a1f825db0800a82d0dabbf7ef49f3a9edc1e794c9545fb94a551613fea
REQUIREMENTS
sed -i -E \
    -e 's/^( *def [^(]+\(.*)\bin: /\1inputs: /' \
    -e 's/^( *def add_scale_nd\(.*channel_axis: int)\)/\1 = ...)/' \
    "$2/tensorrt_bindings/tensorrt.pyi"
