#!/bin/sh
# Builds the application for Linux: sh build.sh FOLDER, and then FOLDER/dist/app/app runs without Python or this package.
# vm-compile, vm-pack and pyinstaller must be on the path, all of one environment with the package installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
cp "$here/app.py" "$here/app.spec" "$here/keys.toml" .
# a publisher makes this key once, and keeps it elsewhere than where applications are built
test -f publisher.pem || vm-pack keygen --type=p256 -o publisher.pem
vm-compile "$here/../simple_mul.generic.mlir" --target=reference,spirv --model-name=simple-mul --model-version=2 -o unsigned.fb
vm-pack sign unsigned.fb --key=publisher.pem -o model.fb
vm-pack verify model.fb --policy=keys.toml
pyinstaller --noconfirm --log-level=WARN app.spec
