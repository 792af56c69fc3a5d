#!/bin/sh
# Print the first Python that Octopus runs on; print nothing when there is none.
for name in python3 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
        command -v "$name"
        exit
    fi
done
