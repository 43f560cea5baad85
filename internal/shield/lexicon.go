package shield

import (
	_ "embed" // the two word lists
	"fmt"
	"slices"
	"strings"
)

//go:embed lexicon.txt
var englishLexicon string

//go:embed world.txt
var worldLexicon string

// concepts is a set of meanings of a word. A concept is one meaning, which several words share, such as "ignore",
// "disregard" and "forget".
type concepts uint64

// The concepts, in the order of conceptNames. The concepts that begin with conceptW are for words in other languages
// than English. The last three are not in conceptNames: shapeConcepts finds them by the characters around a word.
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
	conceptAddress // a URL or an e-mail address
	conceptPathname
	conceptIdent // an identifier, as in program code
)

// conceptsForeign is the set of the concepts for words in other languages than English.
const conceptsForeign = conceptWreader | conceptWignore | conceptWinstr | conceptWprior | conceptWnot | conceptWtell | conceptWuser | conceptWsecret | conceptWsend | conceptWsystem | conceptWmodel | conceptWdo

// conceptNames are the names of the concepts in lexicon.txt and world.txt. The index of a name is the number of the
// concept's bit.
var conceptNames = [...]string{"ignore", "setaside", "prior", "instr", "strong", "safety", "system", "reveal",
	"wreader", "unasked", "you", "not", "tell", "user",
	"covert", "quiet", "must", "read", "send", "out", "secret", "place", "convo", "whole", "tool", "call", "auth",
	"decode", "follow", "shell",
	"harm", "delete", "money", "change", "param", "despite", "usedby", "best", "mention", "me", "gave", "later",
	"other", "outside", "respond", "off", "scope", "payee", "deceit", "whenif", "wmodel",
	"wignore", "winstr", "wprior", "wnot", "wtell", "wuser", "wsecret", "wsend", "wsystem", "wdo"}

// A conceptLexicon finds the entries of lexicon.txt and world.txt in a text.
type conceptLexicon struct {
	entries *prefixTree
	// concepts contains the distinct sets of concepts of entries. A value in the tree is an index of this slice.
	concepts []entryConcepts
	// firstPairs is a bit set of the first two bytes of all entries.
	firstPairs [1 << 16 / 64]uint64
}

// An entryConcepts contains the concepts of an entry of the word lists. The concepts in word apply if the entry is a
// whole word of a text. The concepts in stem also apply if a word begins with the entry ("delet*").
type entryConcepts struct{ word, stem concepts }

// A lexiconEntry is one entry in a line of a word list: the folded text and its concepts.
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
	entries := make([]treeEntry, 0, len(all))
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
		entries = append(entries, treeEntry{Text: text, Value: numbers[about]})
		if len(text) > 1 {
			pair := uint16(text[0])<<8 | uint16(text[1])
			l.firstPairs[pair/64] |= 1 << (pair % 64)
		}
	}
	l.entries = newPrefixTree(entries)
	return l, nil
}

// readWordLists returns the entries of both word lists. The same text may be in several entries, with different
// concepts.
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

// maxEntryBytes is larger than the length of every entry.
const maxEntryBytes = 96

// conceptsAt returns the concepts of all entries that begin at text[i], and the length of the longest entry. The text
// is folded, with single spaces between words. If glued is set, an entry may end inside a word.
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

// hasEntry reports whether a word is a lexicon entry or begins with an entry that matches beginnings of words.
func (l *conceptLexicon) hasEntry(word string) bool {
	if word == "" {
		return false
	}
	has, size := l.conceptsAt([]byte(word), 0, false)
	return has != 0 && size > 0
}
