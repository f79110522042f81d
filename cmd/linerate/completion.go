package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

func completionCommand() command {
	return command{
		name: "completion", job: "a script that completes commands and flags in bash, zsh or fish",
		synopsis: "completion bash|zsh|fish",
		about: `Prints a script that teaches a shell the commands, flags and values of linerate.
  bash: source <(linerate completion bash)
  zsh:  source <(linerate completion zsh), after compinit
  fish: linerate completion fish | source`,
		examples: []example{{"linerate completion bash", ""}, {"linerate completion zsh", ""}, {"linerate completion fish", ""}},
		words:    shells(),
		flags:    noFlags("completion"),
		run:      runCompletion,
	}
}

func shells() []string { return []string{"bash", "zsh", "fish"} }

func runCompletion(_ context.Context, stdout, _ io.Writer, args []string) error {
	fs := newFlags("completion")
	if err := parse(stdout, fs, args); err != nil {
		return err
	}
	scripts := map[string]func() string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	script, ok := scripts[fs.Arg(0)]
	if !ok || fs.NArg() != 1 {
		return &usageError{fmt.Sprintf("completion %q: want one of bash, zsh or fish", strings.Join(fs.Args(), " ")), "linerate completion bash"}
	}
	_, err := io.WriteString(stdout, script())
	return unwritten(err)
}

// firstWords is what may stand behind a command, as far as it is known.
func (c command) firstWords() []string {
	if c.name == "help" {
		return commandNames()
	}
	return c.words
}

// eachFlag calls do for every flag of the command, and --help.
func (c command) eachFlag(do func(*pflag.Flag)) {
	c.flags().VisitAll(do)
	do(&pflag.Flag{Name: "help", Shorthand: "h", Usage: "print the flags and examples of this command", NoOptDefVal: "true"})
}

// typed are the ways to type a flag.
func typed(f *pflag.Flag) []string {
	if f.Shorthand == "" {
		return []string{"--" + f.Name}
	}
	return []string{"-" + f.Shorthand, "--" + f.Name}
}

// values is what completion offers for a flag's value: words, or one of the
// kinds "@endpoint", "@file" and "@any".
func values(f *pflag.Flag) []string {
	if c, ok := f.Annotations[valueChoices]; ok {
		return c
	}
	if _, ok := f.Annotations[valueEndpoint]; ok {
		return []string{"@endpoint"}
	}
	if _, ok := f.Annotations[valueFile]; ok {
		return []string{"@file"}
	}
	return []string{"@any"}
}

// endpointsInShell prints the interfaces of this host and its namespaces, in
// any of the three shells.
const endpointsInShell = `command ls /sys/class/net 2>/dev/null; command ls /run/netns 2>/dev/null | command sed 's,$,/,'`

// bashScript is one function and its registration. What may follow is decided
// by the word before; nothing is asked of linerate itself.
func bashScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# bash completion of linerate; made by: linerate completion bash
_linerate_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2"); }
_linerate_endpoints() { %s; }
_linerate() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
	COMPREPLY=()
	# bash may have cut --flag=value into three words.
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if ((COMP_CWORD == 1)); then
		_linerate_words "%s" "$cur"
		return
	fi
	case $command,$prev in
`, endpointsInShell, strings.Join(append(commandNames(), "--help", "--version"), " "))
	for _, c := range commands() {
		c.eachFlag(func(f *pflag.Flag) {
			if takesValue(f) {
				var when []string
				for _, t := range typed(f) {
					when = append(when, c.name+","+t)
				}
				fmt.Fprintf(&b, "\t%s) %s; return ;;\n", strings.Join(when, "|"), bashOffer(values(f)))
			}
		})
	}
	b.WriteString("\tesac\n\tif [[ $cur == -* ]]; then\n\t\tcase $command in\n")
	for _, c := range commands() {
		var all []string
		c.eachFlag(func(f *pflag.Flag) { all = append(all, typed(f)...) })
		fmt.Fprintf(&b, "\t\t%s) _linerate_words %q \"$cur\" ;;\n", c.name, strings.Join(all, " "))
	}
	b.WriteString("\t\tesac\n\t\treturn\n\tfi\n\tcase $command,$COMP_CWORD in\n")
	for _, c := range commands() {
		switch {
		case c.endpoint:
			fmt.Fprintf(&b, "\t%s,*) %s ;;\n", c.name, bashOffer([]string{"@endpoint"}))
		case c.files:
			fmt.Fprintf(&b, "\t%s,*) %s ;;\n", c.name, bashOffer([]string{"@file"}))
		case len(c.firstWords()) > 0:
			fmt.Fprintf(&b, "\t%s,2) %s ;;\n", c.name, bashOffer(c.firstWords()))
		}
	}
	b.WriteString("\tesac\n}\ncomplete -F _linerate linerate\n")
	return b.String()
}

func bashOffer(values []string) string {
	switch values[0] {
	case "@endpoint":
		return `_linerate_words "$(_linerate_endpoints)" "$cur"`
	case "@file":
		return `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur")`
	case "@any":
		return ":"
	}
	return fmt.Sprintf(`_linerate_words %q "$cur"`, strings.Join(values, " "))
}
