package spawn

import (
	"strings"
	"unicode/utf8"
)

// A word is one that a program was given: an option with what may be its value, or a word by itself.
type word struct {
	// option has its dashes, and no value: "-c", "--eval". It is empty for a word by itself, whose text is value.
	option, value string
	// at is where it stands among the arguments, joined says that value is part of the option's word, doubtful that a word by
	// itself may be the value of the option before.
	at               int
	joined, doubtful bool
}

// A grammar is how a program reads its arguments, as far as it is known.
type grammar struct {
	// valued has the short options that take a value, which may be joined to them: the rest of their word.
	valued string
	// alone has the short options, as letters, and long the others that take no value: the word behind one is none.
	alone string
	long  []string
}

// read takes arguments apart up to the first word by itself, with which what the program is to run begins: its arguments
// are not the program's. Where nobody knows whether an option takes a value, the word behind it is read as both, and reading
// goes on.
func (g grammar) read(args []string) []word {
	var words []word
	open := false // the option before may want a value
	for i, arg := range args {
		switch {
		case arg == "--":
			if i+1 < len(args) {
				words = append(words, word{value: args[i+1], at: i + 1})
			}
			return words
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			words = append(words, word{value: arg, at: i, doubtful: open})
			if !open {
				return words
			}
			open = false
		case strings.HasPrefix(arg, "--"):
			option, value, joined := strings.Cut(arg, "=")
			open = !joined && !g.isAlone(option)
			words = append(words, word{option: option, value: value, at: i, joined: joined})
			if !joined {
				words[len(words)-1].value = after(args, i)
			}
		default:
			words, open = g.cluster(words, args, i)
		}
	}
	return words
}

// cluster reads short options that are written as one word.
func (g grammar) cluster(words []word, args []string, i int) ([]word, bool) {
	open := false
	for letters := args[i][1:]; letters != ""; {
		c, size := utf8.DecodeRuneInString(letters)
		letters = letters[size:]
		rest := strings.TrimPrefix(letters, "=")
		w := word{option: "-" + string(c), value: rest, at: i, joined: rest != ""}
		open = !strings.ContainsRune(g.alone, c)
		if rest == "" {
			w.value = after(args, i)
		}
		words = append(words, w)
		if strings.ContainsRune(g.valued, c) {
			return words, rest == ""
		}
	}
	return words, open
}

func (g grammar) isAlone(option string) bool {
	for _, known := range g.long {
		if option == known || strings.HasSuffix(known, "*") && strings.HasPrefix(option, known[:len(known)-1]) {
			return true
		}
	}
	return false
}

// after is the word behind one, or nothing.
func after(args []string, i int) string {
	if i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// has says whether an option is one of those. One that ends in "…" is there too by any beginning of its name that has at least
// three letters: some programs take those.
func (w word) has(options ...string) bool {
	for _, o := range options {
		if whole, ok := strings.CutSuffix(o, "…"); w.option == o || ok && len(w.option) >= len("--abc") && strings.HasPrefix(whole, w.option) {
			return true
		}
	}
	return false
}
