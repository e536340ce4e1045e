#!/usr/bin/env bats
# Completions of both programs, each from its own tables, in bash, and in zsh and fish where they are.
load helper

# asked WORD...: what bash offers for the last word of a command line.
asked() {
	bash -c '. "./bash.$1" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && "_$1" && echo "${COMPREPLY[*]}"' bash "$@"
}

# listed PROGRAM [COMMAND]: every option of its help is in each script.
listed() {
	local options shell
	options=$("$@" --help | sed -nE 's/^  (-., |    )--([a-z][a-z-]*).*/\2/p')
	[ "$(wc -l <<<"$options")" -gt 2 ]
	for option in $options; do
		for shell in bash zsh fish; do
			grep -qE -- "(--|-l )$option\\b" "$shell.$1" || { echo "$shell: no $option of $*"; return 1; }
		done
	done
}

test_setup() {
	for program in mandelq mandelqd; do
		for shell in bash zsh fish; do
			$program --completion=$shell >$shell.$program
			! command -v $shell >/dev/null || $shell -n $shell.$program
		done
	done
}

@test "completions name every command and option" {
	for command in $(mandelq --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
		for shell in bash zsh fish; do grep -qw "$command" $shell.mandelq; done
		listed mandelq "$command"
	done
	for shell in bash zsh fish; do grep -qw keygen $shell.mandelqd; done
	listed mandelqd
	[ -n "$command" ]
	refused 2 "bash, zsh or fish" mandelq --completion=csh
	refused 2 "bash, zsh or fish" mandelqd --completion=csh
}

@test "bash offers commands, options and what an option takes" {
	[ "$(asked mandelq re)" = "resume retry remove render" ]
	[ "$(asked mandelq submit --palette=oc)" = ocean ]
	[ "$(asked mandelq status --state = do)" = done ]
	[ "$(asked mandelq status --state do)" = done ]
	[ "$(asked mandelq submit --supers)" = --supersample= ]
	[ "$(asked mandelq --v)" = --version ]
	[ "$(asked mandelqd k)" = keygen ]
	[ "$(asked mandelqd --log-level = de)" = debug ]
	[ "$(asked mandelqd --threads=2 --state)" = --state-dir= ]
	[ "$(asked mandelqd keygen --fo)" = --force ]
	# readline sees three words in cuda:0, and replaces the last
	[ "$(asked mandelqd --device = cuda : "")" = 0 ]
	[ "$(asked mandelqd --device = cp)" = cpu ]
}

@test "bash offers files and folders with spaces in their names" {
	mkdir "a folder"
	touch "a file"
	[ "$(asked mandelq submit a)" = "a folder a file" ] || [ "$(asked mandelq submit a)" = "a file a folder" ]
	[ "$(asked mandelqd --state-dir = a)" = "a folder" ]
	[ "$(bash -c '. ./bash.mandelq; COMP_WORDS=(mandelq submit a); COMP_CWORD=2; _mandelq; echo ${#COMPREPLY[@]}')" = 2 ]
}

@test "the UUIDs of GPUs are offered" {
	for program in mandelq mandelqd; do
		[ "$(bash -c '. ./bash.$0; eval "_$0_gpus() { echo GPU-1a2b GPU-3c4d; }"
			COMP_WORDS=($0 render --device = GPU-3); COMP_CWORD=4; _$0; echo "${COMPREPLY[*]}"' $program)" = GPU-3c4d ]
	done
	command -v fish >/dev/null || skip "no fish"
	[ "$(fish -c 'source fish.mandelqd; function __mandelqd_gpus; echo GPU-3c4d; end
		complete -C "mandelqd --device=GPU"' | cut -f1)" = --device=GPU-3c4d ]
}

@test "fish offers commands, options and what an option takes" {
	command -v fish >/dev/null || skip "no fish"
	offered() { fish -c "source fish.${1%% *}; complete -C '$1'" | cut -f1 | tr '\n' ' '; }
	[ "$(offered 'mandelq submit --palette=oc')" = "--palette=ocean " ]
	[ "$(offered 'mandelq resu')" = "resume " ]
	[ "$(offered 'mandelqd --log-level=de')" = "--log-level=debug " ]
	[ "$(offered 'mandelqd keyg')" = "keygen " ]
}

@test "zsh offers what an option takes" {
	command -v zsh >/dev/null || skip "no zsh"
	# Typed at a terminal, with a tab behind it: ends once what is expected has been shown.
	cat >ask.zsh <<-'END'
		zmodload zsh/zpty
		zpty asked zsh -f -i
		zpty -w asked "autoload -Uz compinit; compinit -u -D; source ./zsh.$1 2>/dev/null; compdef _$1 $1; echo re''ady"
		zpty -r asked line '*ready*'
		zpty -w -n asked "$2"$'\t'
		zpty -r asked line "*$3*"
		zpty -d asked
	END
	timeout 20 zsh ask.zsh mandelqd 'mandelqd --log-level=deb' --log-level=debug
	timeout 20 zsh ask.zsh mandelqd 'mandelqd --device=cuda:' --device=cuda:0
	timeout 20 zsh ask.zsh mandelqd 'mandelqd keyg' keygen
	timeout 20 zsh ask.zsh mandelq 'mandelq submit --palette=oc' --palette=ocean
	timeout 20 zsh ask.zsh mandelq 'mandelq status --state=assem' --state=assembling
	expect 124 timeout 3 zsh ask.zsh mandelq 'mandelq submit --palette=oc' --palette=never
}
