#!/usr/bin/env bats
# The man pages are sound, and say what the programs say of themselves.
load helper

COMMANDS="submit status wait fetch info watch cancel pause resume retry priority remove clean devices
metrics keygen render"

# The long options that a help text or a man page lists.
help_options() {
	"$@" --help | grep -oE '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

page_options() {
	grep -oE 'Fl Fl [a-z-]+' "$1" | sed 's/Fl Fl /--/' | sort -u
}

@test "the man pages have no warning" {
	for page in "$MQ_TOP"/man/*.[1-8]; do
		run mandoc -T lint -W warning "$page"
		[ "$status" = 0 ] || { echo "$output"; return 1; }
	done
	[ "$(ls "$MQ_TOP"/man/*.[1-8] | wc -l)" = 5 ]
}

@test "mandelq(1) has every option that the help has, and no other" {
	for command in $COMMANDS; do help_options mandelq "$command"; done | sort -u >help
	[ "$(wc -l <help)" -gt 20 ]
	page_options "$MQ_TOP/man/mandelq.1" >page
	diff help page
}

@test "mandelqd(8) has every option that the help has, and no other" {
	help_options mandelqd >help
	[ "$(wc -l <help)" -gt 5 ]
	page_options "$MQ_TOP/man/mandelqd.8" >page
	diff help page
}

@test "every palette is in mandelq-job(5) and in the program's error" {
	start_worker
	run mq submit --palette=nosuch
	for palette in gray ember ocean aurora sunset forest porcelain spectrum; do
		grep -qw "$palette" "$MQ_TOP/man/mandelq-job.5"
		[[ $output == *"$palette"* ]]
	done
}

@test "every local file that the documents link to exists" {
	cd "$MQ_TOP"
	for file in README.md ARCHITECTURE.md CONTRIBUTING.md; do
		for link in $(grep -oE '\]\([^)#:]+' "$file" | cut -c3-); do
			[ -e "$link" ] || { echo "$file: $link"; return 1; }
		done
	done
}
