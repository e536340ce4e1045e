#!/usr/bin/env bats
# The man pages are sound, and say what the programs say of themselves.
load helper

# The commands of each page of section 1.
PAGES="mandelq: wait devices metrics keygen
mandelq-submit: submit
mandelq-render: render
mandelq-fetch: fetch
mandelq-status: status info watch
mandelq-queue: cancel pause resume retry priority remove clean"

# The long options that a help text lists, not those that it mentions.
help_options() {
	"$@" --help | sed -nE 's/^  (-., |    )(--[a-z][a-z-]*).*/\2/p' | sort -u
}

# Every long option that a page names.
page_options() {
	grep -oE 'Fl Fl [a-z-]+' "$1" | sed 's/Fl Fl /--/' | sort -u
}

# The long options that a page, or one section of it, explains: the tags of its lists.
tag_options() {
	awk -v section="${2:-}" '/^\.S[sh] / { on = !section || $0 == ".Ss " section } on && /^\.It /' "$1" |
		grep -oE 'Fl Fl [a-z-]+' | sed 's/Fl Fl /--/' | sort
}

@test "the man pages have no warning" {
	for page in "$MQ_TOP"/man/*.[1-8]; do
		run mandoc -T lint -W warning "$page"
		[ "$status" = 0 ] || { echo "$output"; return 1; }
	done
	[ "$(ls "$MQ_TOP"/man/*.[1-8] | wc -l)" = 10 ]
}

@test "every command has a page, and stands in mandelq(1)" {
	mandelq --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort >commands
	[ "$(wc -l <commands)" -gt 10 ]
	cut -d: -f2 <<<"$PAGES" | tr ' ' '\n' | grep . | sort >here
	diff commands here
	for command in $(cat commands); do
		grep -qE "^\.It Cm (.* )?$command( |\$)" "$MQ_TOP/man/mandelq.1" || { echo "$command"; return 1; }
	done
}

@test "each command's options are in its page or the common ones, once, and no other" {
	tag_options "$MQ_TOP/man/mandelq.1" "Common options" >common
	tag_options "$MQ_TOP/man/mandelq-submit.1" "Job options" >job
	[ "$(wc -l <common)" -gt 5 ] && [ "$(wc -l <job)" -gt 10 ]
	while IFS=: read -r page commands; do
		echo "$page"
		tag_options "$MQ_TOP/man/$page.1" >own
		[ "$page" = mandelq ] || sort common own >all
		[ "$page" != mandelq ] || cp own all
		[ "$page" != mandelq-render ] || sort -o all all job # which are told in mandelq-submit(1)
		[ -z "$(uniq -d all)" ] || { uniq -d all; return 1; }
		for command in $commands; do
			help_options mandelq "$command" >"help.$command"
			[ -z "$(comm -13 all "help.$command")" ] || { echo "$command"; comm -13 all "help.$command"; return 1; }
		done
		# What the page has besides the common options belongs to one of its commands.
		for command in $commands; do cat "help.$command"; done | sort -u >helps
		comm -23 all helps | comm -23 - common >strange
		[ ! -s strange ] || { cat strange; return 1; }
	done <<<"$PAGES"
}

@test "the pages of mandelq name no option that no command has" {
	for command in $(cut -d: -f2 <<<"$PAGES"); do help_options mandelq "$command"; done | sort -u >help
	[ "$(wc -l <help)" -gt 20 ]
	for page in $(cut -d: -f1 <<<"$PAGES"); do page_options "$MQ_TOP/man/$page.1"; done | sort -u >page
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
	for file in README.md ARCHITECTURE.md CONTRIBUTING.md docs/PEERS.md; do
		for link in $(grep -oE '\]\([^)#:]+' "$file" | cut -c3-); do
			[ -e "$link" ] || { echo "$file: $link"; return 1; }
		done
	done
}
