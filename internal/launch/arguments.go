package launch

import (
	"strings"
	"unicode/utf8"
)

// An argument is one argument of a program: an option with its possible value, or a word that is not an option.
type argument struct {
	// option is the option with its dashes and without its value, such as "-c" or "--eval". value is the option's
	// value. For a word that is not an option, option is empty and value is that word.
	option, value string
	// index is the position among the arguments, counted from 0. joined is set if option and value are one word, as in
	// "--eval=x". maybeValue is set if option is empty and the word may also be the value of the option before it.
	index              int
	joined, maybeValue bool
}

// An optionGrammar describes how a program parses its arguments, as far as that is known.
type optionGrammar struct {
	// shortWithValue contains the letters of the short options that take a value. The value may follow the letter in
	// the same word.
	shortWithValue string
	// shortFlags contains the letters of the short options that take no value. longFlags contains the long options that
	// take no value; a final "*" matches any suffix. The word after such an option is not its value.
	shortFlags string
	longFlags  []string
}

// parse parses arguments up to and including the first word that is neither an option nor the value of an option. That
// word is the program or script to run, and the arguments after it belong to that program. If it is unknown whether an
// option takes a value, the result contains the next word twice. It is the option's value, and also a word with
// maybeValue. Parsing then continues.
func (g optionGrammar) parse(args []string) []argument {
	var words []argument
	open := false // whether the option before may take the next word as its value
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

// parseShortOptions parses the short options in args[i], such as "-abc", and appends them to words. It reports whether
// the last of these options may take the next word as its value.
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

// isOption reports whether w is one of options. An entry that ends in "…" also matches prefixes with at least three
// letters, since some programs accept such abbreviations.
func (w argument) isOption(options ...string) bool {
	for _, o := range options {
		if whole, ok := strings.CutSuffix(o, "…"); w.option == o || ok && len(w.option) >= len("--abc") &&
			strings.HasPrefix(whole, w.option) {
			return true
		}
	}
	return false
}
