package words

import (
	_ "embed" // the two lists of words
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/shield/tree"
)

//go:embed lexicon.txt
var english string

//go:embed world.txt
var world string

// concepts are what a word is about, a bit each.
type concepts uint64

// The concepts, as lexicon.txt and world.txt name them; the last ones are not words of a list (read.go).
const (
	ignore concepts = 1 << iota
	setaside
	prior
	instr
	strong
	safety
	system
	revealing
	wreader
	unasked
	you
	not
	tell
	user
	covert
	quiet
	must
	read
	send
	out
	secret
	place
	convo
	whole
	tool
	call
	auth
	decoding
	follow
	shell
	harm
	removing
	money
	change
	param
	despite
	usedby
	best
	mention
	me
	gave
	later
	other
	outside
	respond
	off
	scope
	payee
	deceit
	whenif
	wmodel
	wignore
	winstr
	wprior
	wnot
	wtell
	wuser
	wsecret
	wsend
	wsystem
	wdo
	address // a URL, or where mail goes
	pathname
	ident // a name as programs have them
)

// foreignWords are those of other languages than English.
const foreignWords = wreader | wignore | winstr | wprior | wnot | wtell | wuser | wsecret | wsend | wsystem | wmodel | wdo

// names are the concepts in the order of their bits.
var names = [...]string{"ignore", "setaside", "prior", "instr", "strong", "safety", "system", "reveal", "wreader", "unasked", "you", "not", "tell", "user",
	"covert", "quiet", "must", "read", "send", "out", "secret", "place", "convo", "whole", "tool", "call", "auth", "decode", "follow", "shell",
	"harm", "delete", "money", "change", "param", "despite", "usedby", "best", "mention", "me", "gave", "later", "other", "outside", "respond", "off", "scope", "payee", "deceit", "whenif", "wmodel",
	"wignore", "winstr", "wprior", "wnot", "wtell", "wuser", "wsecret", "wsend", "wsystem", "wdo"}

// A lexicon finds the entries of the lists in a text.
type lexicon struct {
	tree *tree.Tree
	// ends are what entries are about, by the values of the tree.
	ends []end
	// pairs has a bit for each two bytes that an entry begins with.
	pairs [1 << 16 / 64]uint64
}

// An end is what entries are about: one that is a whole word, or the beginning of one.
type end struct{ word, stem concepts }

// A listed is an entry of the lists, which stand there as words are folded.
type listed struct {
	text string
	end
}

func newLexicon() (*lexicon, error) {
	all, err := readLists()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.text, b.text) })
	l := &lexicon{ends: make([]end, 1)}
	numbers := map[end]uint16{}
	entries := make([]tree.Entry, 0, len(all))
	for len(all) > 0 {
		text, about := all[0].text, end{}
		for len(all) > 0 && all[0].text == text {
			about.word |= all[0].word
			about.stem |= all[0].stem
			all = all[1:]
		}
		if numbers[about] == 0 {
			numbers[about] = uint16(len(l.ends))
			l.ends = append(l.ends, about)
		}
		entries = append(entries, tree.Entry{Text: text, Value: numbers[about]})
		if len(text) > 1 {
			pair := uint16(text[0])<<8 | uint16(text[1])
			l.pairs[pair/64] |= 1 << (pair % 64)
		}
	}
	l.tree = tree.New(entries)
	return l, nil
}

// readLists gives the entries as they stand in the lists, where one may be under several concepts.
func readLists() ([]listed, error) {
	all := make([]listed, 0, mostly)
	for _, list := range []string{english, world} {
		for n, line := range strings.Split(list, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			head, entries, ok := strings.Cut(line, ":")
			fields := strings.Fields(head)
			bit := concepts(0)
			for i, name := range names {
				if ok && name == fields[len(fields)-1] {
					bit = 1 << i
				}
			}
			if bit == 0 {
				return nil, fmt.Errorf("read the lists of words: line %d: no concept %q", n+1, head)
			}
			for entry := range strings.SplitSeq(entries, ",") {
				switch text, stem := strings.CutSuffix(strings.TrimSpace(entry), "*"); {
				case text == "":
				case stem:
					all = append(all, listed{text, end{stem: bit}})
				default:
					all = append(all, listed{text, end{word: bit}})
				}
			}
		}
	}
	return all, nil
}

// mostly is about how many entries the lists come to.
const mostly = 1 << 14

// begins says whether an entry of two bytes or more begins with these.
func (l *lexicon) begins(a, b byte) bool {
	pair := uint16(a)<<8 | uint16(b)
	return l.pairs[pair/64]>>(pair%64)&1 != 0
}

// longest is more bytes than an entry has.
const longest = 96

// at gives what the entries are about that begin at i of a folded text, in which one space stands between words. Where
// glued, an entry may end within a word.
func (l *lexicon) at(text []byte, i int, glued bool) (has concepts, size int) {
	at := l.tree.Begin(text[i])
	for j := i + 1; !at.None(); j++ {
		if value := l.tree.Value(at); value != 0 {
			e := &l.ends[value]
			whole := glued || j == len(text) || text[j] == ' '
			if whole {
				has |= e.word
			}
			if has |= e.stem; whole || e.stem != 0 {
				size = j - i
			}
		}
		if j == len(text) {
			break
		}
		at = l.tree.Next(at, text[j])
	}
	return has, size
}

// has says whether a word by itself is an entry, or begins with one that is a stem.
func (l *lexicon) has(word string) bool {
	if word == "" {
		return false
	}
	has, size := l.at([]byte(word), 0, false)
	return has != 0 && size > 0
}
