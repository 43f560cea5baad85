package index

import (
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// A Document is a card as it is looked for.
type Document struct {
	// ID is what a hit names; a document takes the place of the one with the same ID.
	ID string
	// Server is the server's name, Name the tool's own, Title and Description what it says of itself.
	Server, Name, Title, Description string
	// Schema is the JSON schema of its arguments; nil if it takes none.
	Schema json.RawMessage
}

// The fields of a document, each of which counts with a weight of its own.
const (
	fieldName = iota
	fieldServer
	fieldLead       // its title, and the first sentence of its description
	fieldRest       // the other sentences
	fieldParameters // the names of its parameters
	fieldHints      // what is said of its parameters, and the values they may have
	fields
)

const (
	// maxSchemaDepth is how deep into a schema parameters are looked for.
	maxSchemaDepth = 5
	// maxFieldBytes is the most bytes of a field that are read: what is said after them finds nothing.
	maxFieldBytes = 16 << 10
)

// fieldTexts returns the text of each field.
func (d *Document) fieldTexts() [fields]string {
	var parameters, hints strings.Builder
	writeSchemaText(d.Schema, &parameters, &hints)
	end := firstSentenceLen(d.Description)
	lead, rest := d.Title+"\n"+d.Description[:end], d.Description[end:]
	texts := [fields]string{d.Name, d.Server, lead, rest, parameters.String(), hints.String()}
	for i, text := range texts {
		if len(text) > maxFieldBytes {
			texts[i] = text[:maxFieldBytes]
		}
	}
	return texts
}

// A documentWords is the words of each field of a document.
type documentWords struct{ words [fields][]string }

// wordCount is how many words there are.
func (r *documentWords) wordCount() (n int) {
	for _, words := range r.words {
		n += len(words)
	}
	return n
}

// splitDocuments reads documents, on as many cores as there are.
func splitDocuments(docs []Document) []documentWords {
	all := make([]documentWords, len(docs))
	read := func(i int) {
		for f, text := range docs[i].fieldTexts() {
			all[i].words[f] = SplitWords(text)
		}
	}
	const few = 64 // documents at a time, and for one core
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (len(docs)+few-1)/few) {
		readers.Go(func() {
			for from := int(next.Add(few)) - few; from < len(docs); from = int(next.Add(few)) - few {
				for i := from; i < min(from+few, len(docs)); i++ {
					read(i)
				}
			}
		})
	}
	readers.Wait()
	return all
}

// minSentence is how many bytes a first sentence has at least: what ends before is a heading.
const minSentence = 12

// firstSentenceLen is the number of bytes of the first sentence of a text: it ends at a line's end, or after a full
// stop that is not followed by a small letter, as that of an abbreviation is.
func firstSentenceLen(text string) int {
	for i, r := range text {
		if i < minSentence {
			continue
		}
		switch r {
		case '\n', '。':
			return i + utf8.RuneLen(r)
		case '.', '!', '?':
			after := strings.TrimLeft(text[i+1:], " \t")
			if next, _ := utf8.DecodeRuneInString(after); len(after) < len(text[i+1:]) && !unicode.IsLower(next) {
				return i + 1
			}
		}
	}
	return len(text)
}

// A parameterSchema is what is read of one. A member of another kind than it should be is none.
type parameterSchema struct {
	Description string                      `json:"description"`
	Enum        []any                       `json:"enum"`
	Properties  map[string]*parameterSchema `json:"properties"`
	Items       *parameterSchema            `json:"items"`
}

// writeSchemaText writes the names of parameters and what is said of them, in the order of the names.
func writeSchemaText(raw json.RawMessage, parameters, hints *strings.Builder) {
	if len(raw) == 0 {
		return
	}
	var s parameterSchema
	if err := json.Unmarshal(raw, &s); err != nil {
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); !odd {
			return
		}
	}
	s.Description = "" // that of the tool
	s.writeParameters(parameters, hints, maxSchemaDepth)
}

func (s *parameterSchema) writeParameters(parameters, hints *strings.Builder, depth int) {
	if s == nil || depth == 0 || hints.Len() > maxFieldBytes || parameters.Len() > maxFieldBytes {
		return
	}
	writeLine(hints, s.Description)
	for _, v := range s.Enum {
		text, _ := v.(string)
		writeLine(hints, text)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		writeLine(parameters, name)
		s.Properties[name].writeParameters(parameters, hints, depth-1)
	}
	s.Items.writeParameters(parameters, hints, depth-1)
}

func writeLine(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(text)
		b.WriteByte('\n')
	}
}

// EmbeddingText is what a document is embedded by: what it is called and what it says of itself, and of its parameters
// the names.
func (d *Document) EmbeddingText() string {
	texts := d.fieldTexts()
	var b strings.Builder
	for _, text := range []string{d.Server, d.Name, texts[fieldLead] + texts[fieldRest],
		strings.ReplaceAll(texts[fieldParameters], "\n", " ")} {
		if text = strings.TrimSpace(text); text != "" {
			writeLine(&b, text)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TextKey is the key of its text.
func (d *Document) TextKey() TextKey { return TextKeyOf(d.EmbeddingText()) }
