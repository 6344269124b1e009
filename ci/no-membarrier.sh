#!/bin/sh
# A RUSTC_WORKSPACE_WRAPPER: compiles the packages of the workspace as on a system without a fence for other threads.
# Dependencies are compiled as ever, and therefore only once.
rustc=$1
shift
exec "$rustc" "$@" --cfg heist_no_membarrier
