package injection

import (
	_ "embed" // the two lists of words
	"fmt"
	"slices"
	"strings"
)

//go:embed lexicon.txt
var englishLexicon string

//go:embed world.txt
var worldLexicon string

// concepts is a set of the meanings of a word.
type concepts uint64

// The concepts, as lexicon.txt and world.txt name them; the last ones are not words of a list (read.go).
const (
	conceptIgnore concepts = 1 << iota
	conceptSetaside
	conceptPrior
	conceptInstr
	conceptStrong
	conceptSafety
	conceptSystem
	conceptRevealing
	conceptWreader
	conceptUnasked
	conceptYou
	conceptNot
	conceptTell
	conceptUser
	conceptCovert
	conceptQuiet
	conceptMust
	conceptRead
	conceptSend
	conceptOut
	conceptSecret
	conceptPlace
	conceptConvo
	conceptWhole
	conceptTool
	conceptCall
	conceptAuth
	conceptDecoding
	conceptFollow
	conceptShell
	conceptHarm
	conceptRemoving
	conceptMoney
	conceptChange
	conceptParam
	conceptDespite
	conceptUsedby
	conceptBest
	conceptMention
	conceptMe
	conceptGave
	conceptLater
	conceptOther
	conceptOutside
	conceptRespond
	conceptOff
	conceptScope
	conceptPayee
	conceptDeceit
	conceptWhenif
	conceptWmodel
	conceptWignore
	conceptWinstr
	conceptWprior
	conceptWnot
	conceptWtell
	conceptWuser
	conceptWsecret
	conceptWsend
	conceptWsystem
	conceptWdo
	conceptAddress // a URL, or where mail goes
	conceptPathname
	conceptIdent // a name as programs have them
)

// conceptsForeign are those of other languages than English.
const conceptsForeign = conceptWreader | conceptWignore | conceptWinstr | conceptWprior | conceptWnot | conceptWtell | conceptWuser | conceptWsecret | conceptWsend | conceptWsystem | conceptWmodel | conceptWdo

// conceptNames are the concepts in the order of their bits.
var conceptNames = [...]string{"ignore", "setaside", "prior", "instr", "strong", "safety", "system", "reveal",
	"wreader", "unasked", "you", "not", "tell", "user",
	"covert", "quiet", "must", "read", "send", "out", "secret", "place", "convo", "whole", "tool", "call", "auth",
	"decode", "follow", "shell",
	"harm", "delete", "money", "change", "param", "despite", "usedby", "best", "mention", "me", "gave", "later",
	"other", "outside", "respond", "off", "scope", "payee", "deceit", "whenif", "wmodel",
	"wignore", "winstr", "wprior", "wnot", "wtell", "wuser", "wsecret", "wsend", "wsystem", "wdo"}

// A conceptLexicon finds the entries of the lists in a text.
type conceptLexicon struct {
	entries *PrefixTree
	// concepts has the concepts of entries, by the values of the tree.
	concepts []entryConcepts
	// firstPairs has a bit for each two bytes that an entry begins with.
	firstPairs [1 << 16 / 64]uint64
}

// An entryConcepts has the concepts of an entry as a whole word, and as the beginning of a word.
type entryConcepts struct{ word, stem concepts }

// A lexiconEntry is an entry of the lists, in folded form.
type lexiconEntry struct {
	text string
	entryConcepts
}

func loadLexicon() (*conceptLexicon, error) {
	all, err := readWordLists()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b lexiconEntry) int { return strings.Compare(a.text, b.text) })
	l := &conceptLexicon{concepts: make([]entryConcepts, 1)}
	numbers := map[entryConcepts]uint16{}
	entries := make([]TreeEntry, 0, len(all))
	for len(all) > 0 {
		text, about := all[0].text, entryConcepts{}
		for len(all) > 0 && all[0].text == text {
			about.word |= all[0].word
			about.stem |= all[0].stem
			all = all[1:]
		}
		if numbers[about] == 0 {
			numbers[about] = uint16(len(l.concepts))
			l.concepts = append(l.concepts, about)
		}
		entries = append(entries, TreeEntry{Text: text, Value: numbers[about]})
		if len(text) > 1 {
			pair := uint16(text[0])<<8 | uint16(text[1])
			l.firstPairs[pair/64] |= 1 << (pair % 64)
		}
	}
	l.entries = NewPrefixTree(entries)
	return l, nil
}

// readWordLists returns the entries of both lists. One text may be listed under several concepts.
func readWordLists() ([]lexiconEntry, error) {
	all := make([]lexiconEntry, 0, expectedEntries)
	for _, list := range []string{englishLexicon, worldLexicon} {
		for n, line := range strings.Split(list, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			head, entries, ok := strings.Cut(line, ":")
			fields := strings.Fields(head)
			bit := concepts(0)
			for i, name := range conceptNames {
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
					all = append(all, lexiconEntry{text, entryConcepts{stem: bit}})
				default:
					all = append(all, lexiconEntry{text, entryConcepts{word: bit}})
				}
			}
		}
	}
	return all, nil
}

// expectedEntries is the approximate number of entries in the lists.
const expectedEntries = 1 << 14

// mayBegin reports whether an entry of at least two bytes begins with a and b.
func (l *conceptLexicon) mayBegin(a, b byte) bool {
	pair := uint16(a)<<8 | uint16(b)
	return l.firstPairs[pair/64]>>(pair%64)&1 != 0
}

// maxEntryBytes exceeds the length of every entry.
const maxEntryBytes = 96

// conceptsAt returns the concepts of the entries that begin at i of a folded text with single spaces between words, and
// the length of the longest one. If glued, an entry may end within a word.
func (l *conceptLexicon) conceptsAt(text []byte, i int, glued bool) (has concepts, size int) {
	at := l.entries.Begin(text[i])
	for j := i + 1; !at.IsNone(); j++ {
		if value := l.entries.Value(at); value != 0 {
			e := &l.concepts[value]
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
		at = l.entries.Next(at, text[j])
	}
	return has, size
}

// hasEntry reports whether a word by itself is an entry, or begins with one that is a stem.
func (l *conceptLexicon) hasEntry(word string) bool {
	if word == "" {
		return false
	}
	has, size := l.conceptsAt([]byte(word), 0, false)
	return has != 0 && size > 0
}
