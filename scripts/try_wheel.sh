#!/usr/bin/env bash
# Installs the wheel in a fresh Debian that has neither a compiler nor headers, and times the way to the first report.
#
# try_wheel.sh bullseye|bookworm|trixie [WHEEL] [--python DIR] [--torch VERSION|none] [--site DIR]
#   WHEEL            default: the one in dist/ for this machine
#   --python DIR     a Python of one's own in place of the distribution's, where no torch fits that one
#   --site DIR       a site-packages with a torch that fits, where no CPU build does (tests/torches/torch_without_cuda.py)
#   --torch VERSION  default 2.13.0; fetched by this machine's pip, so that no download is in the times
# Needs root and debootstrap. The new root lies in TMPDIR and is removed. docs/install.md has what was seen.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { # what, why, what to do
  echo "trapline: try: $1: $2: $3" >&2
  exit 2
}
suite=${1:?"name a suite: bullseye, bookworm or trixie"}
shift
wheel="" python="" torch=2.13.0 site=""
while (($#)); do
  case $1 in
    --python) python=$2 && shift ;;
    --torch) torch=$2 && shift ;;
    --site) site=$2 torch=site && shift ;;
    *) wheel=$1 ;;
  esac
  shift
done
[[ $wheel ]] || for wheel in dist/trapline-*_"$(uname -m)".whl; do :; done
[[ -f $wheel ]] || fail "there is no wheel" "dist/ has none" "run scripts/wheel.sh"
[[ $(id -u) == 0 ]] || fail "cannot make a root" "not root" "use sudo"
command -v debootstrap >/dev/null || fail "cannot make a root" "no debootstrap" "apt-get install debootstrap"

work=$(mktemp -d)
root=$work/root
clean_up() {
  for place in proc dev python; do
    ! mountpoint -q "$root/$place" || umount "$root/$place"
  done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
echo "trapline: try: making a root of $suite"
debootstrap --variant=minbase --include=python3-venv "$suite" "$root" >"$work/debootstrap.log" 2>&1 ||
  fail "debootstrap failed" "$(tail -1 "$work/debootstrap.log")" "check the network"
mount --bind /dev "$root/dev"
mkdir -p "$root/try/wheels" "$root/python"
cp "$wheel" "$root/try"
cp examples/image_classifier_head.py packaging/wheel/try_inside.sh "$root/try"
if [[ $python ]]; then mount --bind -o ro "$python" "$root/python"; fi
mount -t proc proc "$root/proc"
own=()
[[ ! $python ]] || own=(LD_LIBRARY_PATH=/python/lib)
in_root() { chroot "$root" /usr/bin/env -i "${own[@]}" PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
interpreter=python3
[[ ! $python ]] || interpreter=/python/bin/python3
version=$(in_root "$interpreter" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [[ $site ]]; then
  cp -r "$site" "$root/try/site"
elif [[ $torch != none ]]; then
  python3 -m pip download -q --only-binary=:all: --python-version "$version" -d "$root/try/wheels" "torch==$torch" numpy \
    >"$work/download.log" 2>&1 || fail "cannot fetch torch $torch for Python $version" "$(tail -1 "$work/download.log")" "--torch none"
fi
in_root TRY_PYTHON="$interpreter" TRY_TORCH="$torch" bash /try/try_inside.sh
umount "$root/proc"
in_root bash /try/try_inside.sh without-proc
