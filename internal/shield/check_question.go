package shield

import (
	"encoding/json"
	"net/url"
	"slices"
)

// CheckQuestion checks the params of an elicitation, which is a request of a server to a person. The texts that the
// person reads (the message, titles, descriptions, names of choices) are checked like texts of a definition. Names and
// values of fields and the address of a page are never changed, only flagged, because the answer must contain the
// original values. The error is that of CheckDefinition.
func (s *Shield) CheckQuestion(raw json.RawMessage) (Report, error) {
	return s.walkTexts(raw, func(w *jsonWalker, text string, key bool) string {
		switch {
		case w.isInTopMember("_meta"), key && len(text) < 12 && isPlainKey(text):
			return text
		case !key && len(w.stack) == 1 && w.currentMember() == "url":
			w.addFindings(checkPageAddress(text))
			return text
		case !key && w.isShownToPeople():
			out, reasons := s.checkText(text, "", maxDefinitionText, PlaceNone, nil, nil)
			w.addFindings(reasons)
			return out
		}
		w.addFindings(s.inspectUnchanged(text))
		return text
	})
}

// checkPageAddress returns findings about the address of a web page that a server asks a person to open.
func checkPageAddress(text string) (reasons []Finding) {
	u, err := url.Parse(text)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if web {
		_, web = NormalizeHost(u.Hostname())
	}
	switch {
	case !web:
		reasons = append(reasons, Finding{Rule: "page", Action: "flagged", Why: "is not the address of a web page",
			Excerpt: safeExcerpt(text)})
	case mixesAlphabets(u.Hostname()):
		reasons = append(reasons, Finding{Rule: "lookalikes", Action: "flagged",
			Why: "leads to a host with letters of several alphabets in a word", Excerpt: safeExcerpt(u.Host)})
	}
	_, traces := CanonicalText(text)
	for _, r := range removalFindings(traces, "") {
		r.Action = "flagged" // the address is never changed
		reasons = append(reasons, r)
	}
	return reasons
}

// CheckPrompt checks input for a model: the params of a sampling request, or the messages of a prompt. Such texts are
// meant to contain instructions to a model, so they are checked like results. Invisible characters are removed, and
// nothing is blanked.
func (s *Shield) CheckPrompt(raw json.RawMessage) (Report, error) {
	return s.walkTexts(raw, func(w *jsonWalker, text string, key bool) string {
		if key || w.isInTopMember("_meta") || w.currentMember() != "text" && w.currentMember() != "systemPrompt" {
			return text
		}
		out, reasons := s.checkResultText(text, "", PlaceNone)
		w.addFindings(reasons)
		return out
	})
}

// RuleNames returns the names of the rules whose findings affect the verdict, each name once, in the order of the
// findings.
func RuleNames(reasons []Finding) (names []string) {
	for _, r := range reasons {
		if r.affectsVerdict() && !slices.Contains(names, r.Rule) {
			names = append(names, r.Rule)
		}
	}
	return names
}

// isInTopMember reports whether the current position is inside the given member of the outermost object.
func (w *jsonWalker) isInTopMember(name string) bool {
	return len(w.stack) > 1 && !w.stack[0].array && w.stack[0].key == name
}

// isShownToPeople reports whether the JSON value that the walk has reached is a text of the question that a person reads
// and that is not part of the person's answer, such as a title or a description.
func (w *jsonWalker) isShownToPeople() bool {
	switch w.currentMember() {
	case "message":
		return len(w.stack) == 1
	case "title", "description", "enumNames":
		return w.isInTopMember("requestedSchema")
	}
	return false
}

// inspectUnchanged returns findings about a text that must not be changed. Findings that would change the text are
// flagged instead.
func (s *Shield) inspectUnchanged(text string) []Finding {
	_, reasons := s.checkText(text, "", maxDefinitionText, PlaceNone, nil, nil)
	kept := reasons[:0]
	for _, r := range reasons {
		switch r.Action {
		case "stripped", "blanked":
			r.Action = "flagged"
		case "cut":
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
