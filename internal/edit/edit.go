// Package edit replaces texts in a file at the request of a model. If the exact text is not found, the search ignores
// differences in line endings, white space at the ends of lines, and indentation, in this order. The text must occur
// exactly once, unless Edit.All is set. All bytes outside the replaced text stay the same: the byte order mark, the
// line endings, a missing line ending at the end of the file.
package edit

import (
	"fmt"
	"strings"
)

// An Edit replaces the text Old with New.
type Edit struct {
	Old, New string
	// All replaces each occurrence of Old. Without it, Old must occur exactly once.
	All bool
}

// A Tolerance is the difference that a search ignored when it found a text.
type Tolerance int

// The tolerances, in the order in which they are tried.
const (
	Exact Tolerance = iota
	LineEndings
	TrailingSpace
	Indentation
)

// String describes the tolerance for a model. It returns "" for Exact.
func (t Tolerance) String() string {
	return [...]string{"", "line endings", "white space at the ends of lines", "indentation"}[t]
}

// A Result is an edited text.
type Result struct {
	Content string
	// Replacements is the number of replaced occurrences.
	Replacements int
	// Tolerance is the largest tolerance that any of the edits needed.
	Tolerance Tolerance
}

// An Error reports, to a model, why an edit was not made.
type Error struct {
	// Number is the number of the edit, counted from 1; 0 if there is only one edit.
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

// Apply makes all edits or none. Each edit is applied to the result of the edits before it. The error is an *Error for
// the first edit that cannot be made. If the edits do not change the content, the error is an *Error too.
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

// apply makes one edit. It returns the reason why the edit cannot be made, or "".
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

// A replacement is a new text for the bytes from start to end.
type replacement struct {
	start, end int
	text       string
}

// replaceAll applies replacements. They must be in order and must not overlap.
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

// findExact finds the exact text, or the text with its line endings changed to CRLF if the file uses CRLF.
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

// withLineEnding returns a text in which every line ending is replaced with ending.
func withLineEnding(text, ending string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if ending == "\n" {
		return text
	}
	return strings.ReplaceAll(text, "\n", ending)
}
