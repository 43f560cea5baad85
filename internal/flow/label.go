// Package flow follows where the values of a run come from. A run is one piece of an agent's or a script's work. Each
// source that a run reads has a label, and the run has the join of them: a value that a model made in the run may come
// from any of them. A value that the person has typed, or that stands in a trusted source, keeps that label.
//
// Labels only fall: nothing in this package raises the label of a run. A person can endorse a value, which the caller
// of [Run.Check] knows.
package flow

import "fmt"

// An Integrity says how far a text may decide what is done.
type Integrity uint8

// The integrities, from the lowest to the highest. Untrusted text may inform, but no value of it may be used by a tool
// that writes unless a person endorses the value. Project is the text of files of the person's project: its values may
// be used in the project. Trusted text comes from the person, or from a source that the person trusts.
const (
	Untrusted Integrity = iota
	Project
	Trusted
)

// String returns the integrity in lower case.
func (i Integrity) String() string {
	if names := [...]string{"untrusted", "project", "trusted"}; int(i) < len(names) {
		return names[i]
	}
	return "untrusted"
}

// A Confidentiality says whom a text may reach.
type Confidentiality uint8

// The confidentialities, from the lowest to the highest. Private text must not be used by a tool that sends, unless a
// person endorses the call.
const (
	Public Confidentiality = iota
	Internal
	Private
)

// String returns the confidentiality in lower case.
func (c Confidentiality) String() string {
	if names := [...]string{"public", "internal", "private"}; int(c) < len(names) {
		return names[c]
	}
	return "private"
}

// A Label is what is known of a text: its integrity and its confidentiality. The zero Label is untrusted and public.
type Label struct {
	Integrity       Integrity       `json:"integrity"`
	Confidentiality Confidentiality `json:"confidentiality"`
}

// Clean is the label of what the person has typed: trusted and public.
var Clean = Label{Integrity: Trusted, Confidentiality: Public}

// Join returns the label of a text that was made from texts with both labels: the lower integrity and the higher
// confidentiality.
func (l Label) Join(o Label) Label {
	return Label{Integrity: min(l.Integrity, o.Integrity), Confidentiality: max(l.Confidentiality, o.Confidentiality)}
}

// Taints reports whether a run with the label is judged at all: it is not trusted, or it is private.
func (l Label) Taints() bool { return l.Integrity < Trusted || l.Confidentiality == Private }

// String returns the label for people, such as "untrusted, private". Only a private text is called so.
func (l Label) String() string {
	if l.Confidentiality == Private {
		return l.Integrity.String() + ", " + l.Confidentiality.String()
	}
	return l.Integrity.String()
}

// Words are the words for labels in settings and rules.
func Words() []string {
	return []string{"trusted", "project", "untrusted", "public", "internal", "private"}
}

// With returns the label with the part that a word names; see [Words].
func (l Label) With(word string) (Label, error) {
	switch word {
	case "trusted":
		l.Integrity = Trusted
	case "project":
		l.Integrity = Project
	case "untrusted":
		l.Integrity = Untrusted
	case "public":
		l.Confidentiality = Public
	case "internal":
		l.Confidentiality = Internal
	case "private":
		l.Confidentiality = Private
	default:
		return l, fmt.Errorf("the label %q does not exist", word)
	}
	return l, nil
}
