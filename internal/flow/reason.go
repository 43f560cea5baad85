package flow

import (
	"slices"
	"strings"
)

// The beginnings of the parts of a reason that describe a [Finding] to a person: what a yes does, before the values.
// The end of the first one is how long an endorsement holds.
const (
	EndorsesValues = "yes endorses these values for "
	SendsPrivate   = "yes sends private text"
)

// reasonSeparator stands between the parts of a reason, and partEnd after the beginning of a part.
const reasonSeparator, partEnd = "; ", ": "

// AsksForValues reports whether a reason has a [Finding].
func AsksForValues(reason string) bool {
	return strings.Contains(reason, EndorsesValues) || strings.Contains(reason, SendsPrivate)
}

// First returns the first of the sources of a run that explains its label best: one with its integrity if that is
// untrusted, else a private one; nil without sources.
func First(label Label, origins []Source) *Source {
	for i, s := range origins {
		if label.Integrity == Untrusted && s.Label.Integrity == Untrusted ||
			label.Integrity > Untrusted && label.Confidentiality == Private && s.Label.Confidentiality == Private {
			return &origins[i]
		}
	}
	if len(origins) == 0 {
		return nil
	}
	return &origins[0]
}

// ReasonLines returns the lines of a reason for which a person is asked: what a yes does, and below it each value of a
// finding. A reason without a finding is one line. The lines are not made printable.
func ReasonLines(reason string) (lines []string) {
	if reason == "" {
		return nil
	}
	inFinding, whole := false, ""
	for part := range strings.SplitSeq(reason, reasonSeparator) {
		if strings.HasPrefix(part, EndorsesValues) || strings.HasPrefix(part, SendsPrivate) {
			if does, first, ok := strings.Cut(part, partEnd); ok {
				lines = append(lines, does+":", "  "+first)
				inFinding = true
				continue
			}
		}
		switch {
		case inFinding:
			lines = append(lines, "  "+part)
		case whole != "":
			whole += reasonSeparator + part
			lines[0] = whole
		default:
			whole = part
			lines = append(lines, part)
		}
	}
	return lines
}

// ReasonValues returns the values of a reason for which a person is asked, each with its place, its label and its
// source. A value that needs an endorsement for two reasons is there once. A reason without a finding has none.
func ReasonValues(reason string) (values []string) {
	for _, line := range ReasonLines(reason) {
		if value, ok := strings.CutPrefix(line, "  "); ok && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}
