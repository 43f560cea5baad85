// Package edit replaces texts in a file as a model asks for it. A text that is not found byte for byte is looked for
// with other line endings, other white space at the ends of lines, and another indentation, in this order. It must
// occur once. All bytes outside of it stay: the byte order mark, line endings, the end of the last line.
package edit

import (
	"fmt"
	"strings"
)

// An Edit replaces a text.
type Edit struct {
	Old, New string
	// All replaces each occurrence, where Old need not be unique.
	All bool
}

// A Tolerance is how a text was found.
type Tolerance int

// The tolerances, in the order in which they are tried.
const (
	Exact Tolerance = iota
	LineEndings
	TrailingSpace
	Indentation
)

// String describes the tolerance for a model; it is empty for Exact.
func (t Tolerance) String() string {
	return [...]string{"", "line endings", "white space at the ends of lines", "indentation"}[t]
}

// A Result is an edited text.
type Result struct {
	Content string
	// Replacements counts the replaced occurrences.
	Replacements int
	// Tolerance is the largest that an edit needed.
	Tolerance Tolerance
}

// An Error reports, to a model, why an edit was not made.
type Error struct {
	// Number is the number of the edit, from 1; 0 if there is only one.
	Number int
	Text   string
}

// Error returns the text, with the number of the edit.
func (e *Error) Error() string {
	if e.Number == 0 {
		return e.Text
	}
	return fmt.Sprintf("Edit %d: %s", e.Number, e.Text)
}

// Apply makes edits one after the other, each on the result of those before it, or none: the error is an *Error for the
// first one that cannot be made.
func Apply(content string, edits []Edit) (Result, error) {
	if len(edits) == 0 {
		return Result{}, &Error{Text: "There is no edit to make."}
	}
	r := Result{Content: content}
	for i, e := range edits {
		if reason := r.apply(e); reason != "" {
			failed := &Error{Text: reason}
			if len(edits) > 1 {
				failed.Number = i + 1
			}
			return Result{}, failed
		}
	}
	if r.Content == content {
		return Result{}, &Error{Text: "The file would stay as it is."}
	}
	return r, nil
}

// apply makes one edit. It returns why it cannot be made, or "".
func (r *Result) apply(e Edit) (reason string) {
	switch {
	case e.Old == "":
		return "oldText is empty. Give the text to replace; the tool write writes a whole file."
	case e.Old == e.New:
		return "oldText and newText are the same."
	}
	for _, find := range []func(string, Edit) ([]replacement, Tolerance){findExact, findLines} {
		found, tolerance := find(r.Content, e)
		switch {
		case len(found) == 0:
			continue
		case len(found) > 1 && !e.All:
			return describeAmbiguity(r.Content, found)
		}
		r.Content = replaceAll(r.Content, found)
		r.Replacements += len(found)
		r.Tolerance = max(r.Tolerance, tolerance)
		return ""
	}
	return describeMiss(r.Content, e)
}

// A replacement is a text for the bytes from start to end.
type replacement struct {
	start, end int
	text       string
}

// replaceAll makes replacements that are in order and do not overlap.
func replaceAll(content string, all []replacement) string {
	var out strings.Builder
	at := 0
	for _, one := range all {
		out.WriteString(content[at:one.start])
		out.WriteString(one.text)
		at = one.end
	}
	out.WriteString(content[at:])
	return out.String()
}

// findExact finds the text byte for byte, or with the line endings of the file.
func findExact(content string, e Edit) ([]replacement, Tolerance) {
	if found := occurrences(content, e.Old, e.New); len(found) > 0 {
		return found, Exact
	}
	if !strings.Contains(content, "\r\n") {
		return nil, Exact
	}
	return occurrences(content, withLineEnding(e.Old, "\r\n"), withLineEnding(e.New, "\r\n")), LineEndings
}

func occurrences(content, old, text string) (found []replacement) {
	for at := 0; ; {
		i := strings.Index(content[at:], old)
		if i < 0 {
			return found
		}
		start := at + i
		at = start + len(old)
		found = append(found, replacement{start, at, text})
	}
}

// withLineEnding returns a text whose line endings are all ending.
func withLineEnding(text, ending string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if ending == "\n" {
		return text
	}
	return strings.ReplaceAll(text, "\n", ending)
}
