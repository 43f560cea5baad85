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

// A Document is the searchable form of a card.
type Document struct {
	// ID identifies the document in a hit. Adding a document replaces the document with the same ID.
	ID string
	// Server is the name of the server, and Name is the tool's name at that server. Title and Description are texts
	// from the tool's definition.
	Server, Name, Title, Description string
	// Schema is the JSON schema of the arguments, or nil if the tool has no arguments.
	Schema json.RawMessage
}

// The fields of a document. Each has its own weight in the ranking.
const (
	fieldName = iota
	fieldServer
	fieldLead       // the title and the first sentence of the description
	fieldRest       // the other sentences of the description
	fieldParameters // the names of the parameters
	fieldHints      // the descriptions of the parameters, and their allowed values
	fields
)

const (
	// maxSchemaDepth is the maximum nesting of parameters that are read from a schema. Deeper parameters are not
	// indexed.
	maxSchemaDepth = 5
	// maxFieldBytes is the maximum number of bytes of a field that are indexed. A search does not find words in the
	// rest of the field.
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

// A documentWords contains the words of each field of a document.
type documentWords struct{ words [fields][]string }

// wordCount returns the number of words in all fields.
func (r *documentWords) wordCount() (n int) {
	for _, words := range r.words {
		n += len(words)
	}
	return n
}

// splitDocuments splits the fields of documents into words, in parallel on all processor cores.
func splitDocuments(docs []Document) []documentWords {
	all := make([]documentWords, len(docs))
	read := func(i int) {
		for f, text := range docs[i].fieldTexts() {
			all[i].words[f] = SplitWords(text)
		}
	}
	const few = 64 // the number of documents in a work unit; with fewer, one core is enough
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

// minSentence is the minimum length of a first sentence in bytes. A shorter sentence is usually a heading, so
// firstSentenceLen adds the next sentence to it.
const minSentence = 12

// firstSentenceLen returns the length of the first sentence of a text in bytes. The sentence ends at a line end, or
// at a full stop, exclamation mark or question mark before a blank. If a lower-case letter follows the blank, the
// sentence continues, because the mark may belong to an abbreviation.
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

// A parameterSchema contains the indexed parts of a parameter's schema. Members of an unexpected type are ignored.
type parameterSchema struct {
	Description string                      `json:"description"`
	Enum        []any                       `json:"enum"`
	Properties  map[string]*parameterSchema `json:"properties"`
	Items       *parameterSchema            `json:"items"`
}

// writeSchemaText writes the names of a schema's parameters to parameters, and their descriptions and allowed values
// to hints. The parameters are sorted by name.
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
	s.Description = "" // the tool's description, already indexed
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

// EmbeddingText returns the text from which the document's vector is computed. It consists of the server, the name,
// the title, the description and the names of the parameters.
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

// TextKey returns the key of the document's EmbeddingText.
func (d *Document) TextKey() TextKey { return TextKeyOf(d.EmbeddingText()) }
