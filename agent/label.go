package agent

import "slices"

// A RunLabel says where the text of a run comes from, if that limits what the run may do; see package internal/flow.
type RunLabel struct {
	// Integrity is "untrusted", "project" or "trusted". Private reports that the run has read private text.
	Integrity string `json:"integrity"`
	Private   bool   `json:"private,omitempty"`
	// Kind and Name are the first source that explains the label, such as "file" and its path. They are not verified.
	// More is the number of further sources.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	More int    `json:"more,omitempty"`
}

// integrities are the integrities of a RunLabel from the lowest to the highest.
var integrities = [...]string{"untrusted", "project", "trusted"}

// joinLabel returns the label of a session after one more call: the later label, unless it was read before the earlier
// one was, by a call that ran at the same time. The label of a run only falls.
func joinLabel(before, after *RunLabel) *RunLabel {
	if after == nil {
		return before
	}
	rank := func(l *RunLabel) int { return slices.Index(integrities[:], l.Integrity) }
	if before != nil && (rank(after) > rank(before) || before.Private && !after.Private) {
		return before
	}
	return after
}
