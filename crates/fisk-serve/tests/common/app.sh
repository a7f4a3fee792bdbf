#!/bin/sh
# An application that writes down each command it runs.
if [ "$1" = --fisk-introspect ]; then
	exec cat "$0.json"
fi
echo "$@" >>"$0.ran"
case "$1" in
say) printf '%s\n' "$@" ;;
fail)
	echo oops >&2
	exit 3
	;;
hold)
	trap 'echo killed >>"$0.ran"; exit 143' TERM
	while [ ! -e "$0.go" ]; do sleep 0.02; done
	echo released
	;;
*) echo "did $*" ;;
esac
