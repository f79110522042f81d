package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// zshScript describes every flag to _arguments, which knows the rest.
func zshScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, `#compdef linerate
# zsh completion of linerate; made by: linerate completion zsh
_linerate_endpoints() {
	local -a found
	found=(${(f)"$(%s)"})
	compadd -a found
}
_linerate() {
	local -a commands
	local context state state_descr line
	typeset -A opt_args
	if ((CURRENT == 2)); then
		commands=(
`, endpointsInShell)
	for _, c := range commands() {
		fmt.Fprintf(&b, "\t\t\t%s\n", quote(c.name+":"+zshEscape(c.job)))
	}
	b.WriteString("\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $command in\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "\t%s)\n\t\t_arguments -s", c.name)
		c.eachFlag(func(f *pflag.Flag) {
			for _, t := range typed(f) {
				fmt.Fprintf(&b, " \\\n\t\t\t%s", quote(zshFlag(f, t)))
			}
		})
		switch {
		case c.endpoint:
			fmt.Fprintf(&b, " \\\n\t\t\t%s", quote("1:endpoint:_linerate_endpoints"))
		case c.files:
			fmt.Fprintf(&b, " \\\n\t\t\t%s", quote("1:folder:_files"))
		case len(c.firstWords()) > 0:
			fmt.Fprintf(&b, " \\\n\t\t\t%s", quote("1:word:("+strings.Join(c.firstWords(), " ")+")"))
		}
		b.WriteString("\n\t\t;;\n")
	}
	b.WriteString("\tesac\n}\nif [[ $funcstack[1] == _linerate ]]; then\n\t_linerate \"$@\"\nelse\n\tcompdef _linerate linerate\nfi\n")
	return b.String()
}

func zshFlag(f *pflag.Flag, as string) string {
	what := "[" + zshEscape(f.Usage) + "]"
	if !takesValue(f) {
		return as + what
	}
	end := "" // -o FILE
	if strings.HasPrefix(as, "--") {
		end = "=" // --output FILE, --output=FILE
	}
	offer := ""
	switch v := values(f); v[0] {
	case "@endpoint":
		offer = "_linerate_endpoints"
	case "@file":
		offer = "_files"
	case "@any":
	default:
		offer = "(" + strings.Join(v, " ") + ")"
	}
	return as + end + what + ":" + f.Name + ":" + offer
}

// zshEscape keeps the brackets and colons of a text from being syntax.
func zshEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

// quote makes one word of a shell, in single quotes. fish, too, lets a quote
// end, an escaped one stand, and another begin.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// fishScript is one line per command, flag and word.
func fishScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# fish completion of linerate; made by: linerate completion fish
function __linerate_endpoints
	%s
end
complete -c linerate -f
`, endpointsInShell)
	for _, c := range commands() {
		fmt.Fprintf(&b, "complete -c linerate -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.job))
	}
	for _, c := range commands() {
		when := quote("__fish_seen_subcommand_from " + c.name)
		c.eachFlag(func(f *pflag.Flag) {
			fmt.Fprintf(&b, "complete -c linerate -n %s -l %s", when, f.Name)
			if f.Shorthand != "" {
				fmt.Fprintf(&b, " -s %s", f.Shorthand)
			}
			if takesValue(f) {
				b.WriteString(fishOffer(values(f)))
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.Usage))
		})
		switch {
		case c.endpoint:
			fmt.Fprintf(&b, "complete -c linerate -n %s -a '(__linerate_endpoints)'\n", when)
		case c.files:
			fmt.Fprintf(&b, "complete -c linerate -n %s -F\n", when)
		case len(c.firstWords()) > 0:
			fmt.Fprintf(&b, "complete -c linerate -n %s -a %s\n", quote("__fish_is_nth_token 2; and __fish_seen_subcommand_from "+c.name), quote(strings.Join(c.firstWords(), " ")))
		}
	}
	return b.String()
}

func fishOffer(values []string) string {
	switch values[0] {
	case "@endpoint":
		return " -x -a '(__linerate_endpoints)'"
	case "@file":
		return " -r -F"
	case "@any":
		return " -x"
	}
	return " -x -a " + quote(strings.Join(values, " "))
}
