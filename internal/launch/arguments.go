package launch

import (
	"strings"
	"unicode/utf8"
)

// An argument is one argument of a program: an option with its possible value, or a word by itself.
type argument struct {
	// option has its dashes, and no value: "-c", "--eval". It is empty for a word by itself, whose text is value.
	option, value string
	// index is the position among the arguments. joined is set if the value is part of the option's word, doubtful if a
	// word by itself may be the value of the option before.
	index              int
	joined, maybeValue bool
}

// An optionGrammar describes how a program reads its arguments, as far as known.
type optionGrammar struct {
	// shortWithValue has the short options that take a value, which may be joined to them: the rest of their word.
	shortWithValue string
	// shortFlags and long are the options that take no value: short ones as letters, and long ones. The word after
	// such an option is not its value.
	shortFlags string
	longFlags  []string
}

// parse parses arguments up to the first word by itself, which begins the program to run: later arguments belong to
// that program. If it is unknown whether an option takes a value, the word after it is read as both, and parsing
// continues.
func (g optionGrammar) parse(args []string) []argument {
	var words []argument
	open := false // whether the option before may take a value
	for i, arg := range args {
		switch {
		case arg == "--":
			if i+1 < len(args) {
				words = append(words, argument{value: args[i+1], index: i + 1})
			}
			return words
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			words = append(words, argument{value: arg, index: i, maybeValue: open})
			if !open {
				return words
			}
			open = false
		case strings.HasPrefix(arg, "--"):
			option, value, joined := strings.Cut(arg, "=")
			open = !joined && !g.takesNoValue(option)
			words = append(words, argument{option: option, value: value, index: i, joined: joined})
			if !joined {
				words[len(words)-1].value = nextArg(args, i)
			}
		default:
			words, open = g.parseShortOptions(words, args, i)
		}
	}
	return words
}

// parseShortOptions reads short options that are written as one word.
func (g optionGrammar) parseShortOptions(words []argument, args []string, i int) ([]argument, bool) {
	open := false
	for letters := args[i][1:]; letters != ""; {
		c, size := utf8.DecodeRuneInString(letters)
		letters = letters[size:]
		rest := strings.TrimPrefix(letters, "=")
		w := argument{option: "-" + string(c), value: rest, index: i, joined: rest != ""}
		open = !strings.ContainsRune(g.shortFlags, c)
		if rest == "" {
			w.value = nextArg(args, i)
		}
		words = append(words, w)
		if strings.ContainsRune(g.shortWithValue, c) {
			return words, rest == ""
		}
	}
	return words, open
}

func (g optionGrammar) takesNoValue(option string) bool {
	for _, known := range g.longFlags {
		if option == known || strings.HasSuffix(known, "*") && strings.HasPrefix(option, known[:len(known)-1]) {
			return true
		}
	}
	return false
}

// nextArg returns the argument after index i, or "" if there is none.
func nextArg(args []string, i int) string {
	if i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// isOption reports whether an option is one of options. One that ends in "…" also matches any prefix of its name with
// at least three letters: some programs accept those.
func (w argument) isOption(options ...string) bool {
	for _, o := range options {
		if whole, ok := strings.CutSuffix(o, "…"); w.option == o || ok && len(w.option) >= len("--abc") &&
			strings.HasPrefix(whole, w.option) {
			return true
		}
	}
	return false
}
