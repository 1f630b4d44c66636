#!/usr/bin/env bash
# Fails if a generated file is not what `make generate` makes of the sources, or
# is unknown to git. It compares the files before and after, not with a commit:
# other uncommitted changes do not matter. The files are left regenerated.
#
#   hack/verify-generated.sh COMMAND [ARG...]     the command that generates
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One path a line, of every file that the generators write.
generated() {
  find . -path ./bin -prune -o -path ./.git -prune -o -type f -name 'zz_generated.*' -print
  if [[ -d config/crd/bases ]]; then
    find ./config/crd/bases -type f -name '*.yaml'
  fi
  find ./charts -type f -name README.md
  find ./docs -type f -name metrics.md
}

# copy_to DIR copies every generated file to the same path under DIR.
copy_to() {
  local dir=$1 file
  while IFS= read -r file; do
    mkdir -p "$dir/$(dirname "$file")"
    cp "$file" "$dir/$file"
  done < <(generated)
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/before" "$work/after"

copy_to "$work/before"
touch "$work/started"
"$@"
copy_to "$work/after"

failed=
if ! diff -ruN "$work/before" "$work/after" >"$work/diff"; then
  # The name of the temporary directory would say nothing to the reader.
  sed "s#$work/##g" "$work/diff"
  echo "verify: generated files were out of date (above). They are regenerated now: commit them." >&2
  failed=yes
fi

# The generators write every file afresh, changed or not.
leftover=$(generated | while IFS= read -r file; do
  [[ "$file" -nt "$work/started" ]] || echo "  $file"
done)
if [[ -n "$leftover" ]]; then
  echo "verify: files that no generator writes any more; delete them:" >&2
  echo "$leftover" >&2
  failed=yes
fi

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  untracked=$(generated | while IFS= read -r file; do
    git ls-files --error-unmatch -- "$file" >/dev/null 2>&1 || echo "  $file"
  done)
  if [[ -n "$untracked" ]]; then
    echo "verify: generated files that git does not know; add and commit them:" >&2
    echo "$untracked" >&2
    failed=yes
  fi
fi

if [[ -n "$failed" ]]; then
  exit 1
fi
echo "verify: $(generated | wc -l) generated files are up to date"
