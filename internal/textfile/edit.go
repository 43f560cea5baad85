package textfile

import (
	"fmt"
	"strings"
)

// An Edit replaces the text Old with New.
type Edit struct {
	Old, New string
	// All replaces each occurrence of Old. If All is false, Old must occur exactly once; otherwise the edit fails.
	All bool
}

// A Tolerance is a kind of difference between the old text of an edit and the text in the file. Such a difference was
// ignored to find the old text.
type Tolerance int

// The tolerances, in the order in which they are tried.
const (
	Exact Tolerance = iota
	LineEndings
	TrailingSpace
	Indentation
)

// String returns the name of the ignored difference for a model, such as "indentation"; "" for Exact.
func (t Tolerance) String() string {
	return [...]string{"", "line endings", "white space at the ends of lines", "indentation"}[t]
}

// A Result is the result of Apply. Content is the edited text.
type Result struct {
	Content string
	// Replacements is the number of replaced occurrences.
	Replacements int
	// Tolerance is the largest tolerance with which the text of an edit was found.
	Tolerance Tolerance
}

// An Error explains to a model why no edit was made.
type Error struct {
	// Number is the number of the edit that failed, counted from 1; 0 if there is only one edit, or if no single edit
	// is the reason.
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

// Apply applies all edits to content, each to the result of the edits before it. If one of them fails, no edit is made,
// and the error is an *Error for that edit. The error is also an *Error if there are no edits, or if the edits do not
// change the content.
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

// apply applies one edit to r. It returns "" or, if the edit fails, the reason.
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

// A replacement is a new text for the bytes of a content from start to before end.
type replacement struct {
	start, end int
	text       string
}

// replaceAll returns the content with the replacements applied. They must be in ascending order and must not overlap.
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

// findExact returns the replacements for all occurrences of e.Old. If there are none and the content uses CRLF, it
// searches for e.Old with CRLF line endings.
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
