#!/usr/bin/env bash
# Builds the control plane that the tests and demos run on (etcd, kube-apiserver,
# kube-controller-manager, kubectl) into bin/k8s, from Go modules alone.
#
# A binary is built only if it is missing, or if something that decides what it
# becomes (its module's go.mod and go.sum, the flags, the Go version) has changed
# since: a stamp next to the binary records the hash of all that.
#
# With KUBEBUILDER_ASSETS set nothing is built: the binaries have to be there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
binaries=(etcd kube-apiserver kube-controller-manager kubectl)

if [[ -n "${KUBEBUILDER_ASSETS:-}" ]]; then
  missing=()
  for name in "${binaries[@]}"; do
    [[ -x "$KUBEBUILDER_ASSETS/$name" ]] || missing+=("$name")
  done
  if ((${#missing[@]})); then
    echo "control plane: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no ${missing[*]}." >&2
    echo "control plane: add what is missing, or unset KUBEBUILDER_ASSETS to have everything built into bin/k8s." >&2
    exit 1
  fi
  echo "control plane: using the binaries in KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS"
  exit 0
fi

out="$root/bin/k8s"
mkdir -p "$out"

# Two runs at the same time would build everything twice; the second waits here.
exec 9>"$out/.lock"
if ! flock --nonblock 9; then
  echo "control plane: another build is running, waiting for it"
  flock 9
fi

# The release as `kube-apiserver --version` and /version report it. Without these
# flags the binaries call themselves v0.0.0-master+$Format:%H$.
version=$(cd "$root/hack/k8s" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
pkg=k8s.io/component-base/version
k8s_ldflags="-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"

announced=
announce_once() {
  [[ -n "$announced" ]] && return
  announced=yes
  echo "control plane: building into bin/k8s; the first build takes minutes (about 8 on 2 cores), later ones seconds"
}

# build NAME MODULE_DIR PACKAGE LDFLAGS
build() {
  local name=$1 module=$2 package=$3 ldflags=$4
  local stamp="$out/.$name.stamp" want start=$SECONDS
  want=$({
    cat "$root/hack/$module/go.mod" "$root/hack/$module/go.sum"
    echo "$package $ldflags"
    go env GOVERSION GOOS GOARCH
  } | sha256sum | cut -d' ' -f1)

  if [[ -x "$out/$name" && "$(cat "$stamp" 2>/dev/null)" == "$want" ]]; then
    return
  fi

  announce_once
  echo "control plane: building $name ..."
  # One link at a time, to a temporary name: whoever runs bin/k8s/NAME meanwhile
  # sees the old binary or the new one, never half of one.
  (cd "$root/hack/$module" && CGO_ENABLED=0 go build -ldflags "$ldflags" -o "$out/.$name.tmp" "$package")
  mv "$out/.$name.tmp" "$out/$name"
  echo "$want" >"$stamp"
  echo "control plane: built $name in $((SECONDS - start)) s"
}

build etcd                    etcd go.etcd.io/etcd/server/v3                        "-s -w"
build kube-apiserver          k8s  k8s.io/kubernetes/cmd/kube-apiserver             "$k8s_ldflags"
build kube-controller-manager k8s  k8s.io/kubernetes/cmd/kube-controller-manager    "$k8s_ldflags"
build kubectl                 k8s  k8s.io/kubernetes/cmd/kubectl                    "$k8s_ldflags"

echo "control plane: etcd and Kubernetes $version are ready in bin/k8s"
